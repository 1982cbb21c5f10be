"""The driver dies between two of its system calls, wherever that is: nothing granted is lost.

    make crash-test     every boundary; `make unit` tries a few of each kind

Prepare, unprepare, a start, a device that moves; Allocate, and the release of a slot.

A process of the driver does one thing on a real disk, with real sockets; strace counts the system
calls of that and kills before the nth. The next process finds what is there, and the kubelet,
which this test plays, asks again for what it had no answer to. What only waits (`WAITS`) is not
counted: it changes nothing. Threads are not counted either, so what the driver gives to threads
runs at once here (`lives.AtOnce`).
"""
