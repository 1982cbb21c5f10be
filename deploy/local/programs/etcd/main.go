// Command etcd is upstream's etcd. Its own main package has replace directives, so
// that `go install` refuses it; this one links the same server.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
