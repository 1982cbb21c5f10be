"""What is charged to whom, as the API's objects say.

In come claims and pods; out comes whose a claim is (`owners`), what it costs (`costs`), and what is
charged to each queue, each claim once (`ledger`). What is in flight is not in here. Start reading
at `ledger`.
"""
