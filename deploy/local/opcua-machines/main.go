// Command opcua-machines serves OPC UA with the stack of another project, for tests of discovery.
//
//	opcua-machines '{"port": 4840}' '{"name": "Press 7", "port": 4855, "knownTo": 4840}'
//
// Each argument is a server; one without a name is a Discovery Server, which tells of those that
// registered with it for as long as it lives. When all serve it says so, in one line.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"

	"github.com/gopcua/opcua"
	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/server"
	"github.com/gopcua/opcua/ua"
	"github.com/gopcua/opcua/uasc"
)

const host = "localhost"

// machine is what one argument asks for.
type machine struct {
	Name    string
	Port    int
	Host    string // that it takes itself to be on
	KnownTo int    // the port of a Discovery Server, or 0
}

func (m machine) uri() string {
	return "urn:" + strings.ToLower(strings.ReplaceAll(m.Name, " ", ":"))
}

func main() {
	ctx := context.Background()
	for _, text := range os.Args[1:] {
		one := machine{Host: host}
		if err := json.Unmarshal([]byte(text), &one); err != nil {
			log.Fatal(err)
		}
		if err := one.serve(ctx); err != nil {
			log.Fatalf("%s: %v", text, err)
		}
	}
	fmt.Println("serving")
	select {}
}

func (m machine) serve(ctx context.Context) error {
	served := server.New(
		server.EndPoint(host, m.Port),
		server.ServerName(m.Name),
		server.EnableSecurity("None", ua.MessageSecurityModeNone),
		server.EnableAuthMode(ua.UserTokenTypeAnonymous),
	)
	others := &registry{}
	if m.Name == "" {
		others.tellThrough(served)
	}
	if err := served.Start(ctx); err != nil {
		return err
	}
	description := served.Endpoints()[0].Server
	description.ApplicationURI = m.uri()
	description.DiscoveryURLs = []string{fmt.Sprintf("opc.tcp://%s:%d", m.Host, m.Port)}
	if m.Name == "" {
		description.ApplicationType = ua.ApplicationTypeDiscoveryServer
		others.add(description)
	}
	if m.KnownTo == 0 {
		return nil
	}
	return register(ctx, description, m.KnownTo)
}

// registry is what a Discovery Server knows. The stack leaves that to its user.
type registry struct {
	mutex sync.Mutex
	known []*ua.ApplicationDescription
}

// tellThrough takes the place of the server's own answers; it must not have been started.
func (r *registry) tellThrough(served *server.Server) {
	served.RegisterHandler(id.RegisterServerRequest_Encoding_DefaultBinary, r.register)
	served.RegisterHandler(id.FindServersRequest_Encoding_DefaultBinary, r.find)
}

func (r *registry) add(description *ua.ApplicationDescription) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.known = append(r.known, description)
}

func (r *registry) register(_ *uasc.SecureChannel, request ua.Request, _ uint32) (ua.Response, error) {
	told := request.(*ua.RegisterServerRequest).Server
	r.add(&ua.ApplicationDescription{
		ApplicationURI:  told.ServerURI,
		ProductURI:      told.ProductURI,
		ApplicationName: told.ServerNames[0],
		ApplicationType: told.ServerType,
		DiscoveryURLs:   told.DiscoveryURLs,
	})
	return &ua.RegisterServerResponse{ResponseHeader: header(request)}, nil
}

func (r *registry) find(_ *uasc.SecureChannel, request ua.Request, _ uint32) (ua.Response, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return &ua.FindServersResponse{ResponseHeader: header(request), Servers: r.known}, nil
}

func header(request ua.Request) *ua.ResponseHeader {
	return &ua.ResponseHeader{
		RequestHandle:      request.Header().RequestHandle,
		ServiceResult:      ua.StatusOK,
		ServiceDiagnostics: &ua.DiagnosticInfo{},
		StringTable:        []string{},
		AdditionalHeader:   ua.NewExtensionObject(nil),
	}
}

func register(ctx context.Context, description *ua.ApplicationDescription, port int) error {
	client, err := opcua.NewClient(fmt.Sprintf("opc.tcp://%s:%d", host, port))
	if err != nil {
		return err
	}
	if err := client.Dial(ctx); err != nil {
		return err
	}
	defer client.Close(ctx)
	request := &ua.RegisterServerRequest{Server: &ua.RegisteredServer{
		ServerURI:     description.ApplicationURI,
		ProductURI:    description.ProductURI,
		ServerNames:   []*ua.LocalizedText{description.ApplicationName},
		ServerType:    description.ApplicationType,
		DiscoveryURLs: description.DiscoveryURLs,
		IsOnline:      true,
	}}
	return client.Send(ctx, request, func(ua.Response) error { return nil })
}
