// Command discovery-peer speaks Akri's discovery contract from stubs that were generated from the
// same .proto file in another language: the other end in tests of what Moorage says on the wire.
//
//	discovery-peer handler FOLDER NAME    a handler: each word of the details is a device
//	discovery-peer local FOLDER NAME      the same, of devices that only this node sees
//	discovery-peer agent FOLDER DETAILS   an agent: asks each handler that registers
//
// Each prints what it is told, one JSON object to a line. A line of a handler's standard input takes
// the place of the details: its words are the devices from then on.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

const agentSocket = "agent-registration.sock"

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: discovery-peer handler FOLDER NAME | local FOLDER NAME | agent FOLDER DETAILS")
	}
	run := map[string]func(folder, text string) error{
		"handler": func(folder, name string) error { return runHandler(folder, name, true) },
		"local":   func(folder, name string) error { return runHandler(folder, name, false) },
		"agent":   runAgent,
	}[os.Args[1]]
	if err := run(os.Args[2], os.Args[3]); err != nil {
		log.Fatal(err)
	}
}

func show(message proto.Message) {
	text, err := protojson.MarshalOptions{EmitUnpopulated: true}.Marshal(message)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text))
}

func listen(socket string) (net.Listener, error) {
	if err := os.RemoveAll(socket); err != nil {
		return nil, err
	}
	return net.Listen("unix", socket)
}

func dial(socket string) (*grpc.ClientConn, error) {
	return grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// plugged is what the standard input said last, if it said anything.
type plugged struct {
	mutex   sync.Mutex
	line    *string
	changed chan struct{}
}

func (p *plugged) read(input *bufio.Scanner) {
	for input.Scan() {
		line := input.Text()
		p.mutex.Lock()
		p.line = &line
		close(p.changed)
		p.changed = make(chan struct{})
		p.mutex.Unlock()
	}
}

// instead gives the words in force, and what tells of the next.
func (p *plugged) instead(details string) ([]string, <-chan struct{}) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.line != nil {
		details = *p.line
	}
	return strings.Fields(details), p.changed
}

type handler struct {
	UnimplementedDiscoveryHandlerServer
	plugged *plugged
}

func (h handler) Discover(request *DiscoverRequest, stream grpc.ServerStreamingServer[DiscoverResponse]) error {
	show(request)
	for {
		words, changed := h.plugged.instead(request.DiscoveryDetails)
		if err := stream.Send(devices(words)); err != nil {
			return err
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-changed:
		}
	}
}

func devices(words []string) *DiscoverResponse {
	response := &DiscoverResponse{}
	for _, word := range words {
		response.Devices = append(response.Devices, &Device{
			Id:          word,
			Properties:  map[string]string{"PEER_LINE": word, "resource.kubernetes.io/pciBusID": "0000:65:00.0"},
			Mounts:      []*Mount{{ContainerPath: "/in", HostPath: "/etc/os-release", ReadOnly: true}},
			DeviceSpecs: []*DeviceSpec{{ContainerPath: "/dev/in", HostPath: "/dev/null", Permissions: "rw"}},
		})
	}
	return response
}

func runHandler(folder, name string, shared bool) error {
	socket := filepath.Join(folder, name+".sock")
	listener, err := listen(socket)
	if err != nil {
		return err
	}
	agent, err := dial(filepath.Join(folder, agentSocket))
	if err != nil {
		return err
	}
	request := &RegisterDiscoveryHandlerRequest{
		Name: name, Endpoint: socket, EndpointType: RegisterDiscoveryHandlerRequest_UDS, Shared: shared,
	}
	server := grpc.NewServer()
	now := &plugged{changed: make(chan struct{})}
	go now.read(bufio.NewScanner(os.Stdin))
	RegisterDiscoveryHandlerServer(server, handler{plugged: now})
	go func() {
		_, err := NewRegistrationClient(agent).RegisterDiscoveryHandler(
			context.Background(), request, grpc.WaitForReady(true))
		if err != nil {
			log.Fatal(err)
		}
	}()
	return server.Serve(listener)
}

type agent struct {
	UnimplementedRegistrationServer
	details string
}

func (a agent) RegisterDiscoveryHandler(_ context.Context, request *RegisterDiscoveryHandlerRequest) (*Empty, error) {
	show(request)
	go a.ask(request.Endpoint)
	return &Empty{}, nil
}

func (a agent) ask(socket string) {
	connection, err := dial(socket)
	if err != nil {
		log.Fatal(err)
	}
	stream, err := NewDiscoveryHandlerClient(connection).Discover(context.Background(), &DiscoverRequest{
		DiscoveryDetails:    a.details,
		DiscoveryProperties: map[string]*ByteData{"secret": {Vec: []byte("s")}, "none": {}},
	})
	for err == nil {
		var response *DiscoverResponse
		if response, err = stream.Recv(); err == nil {
			show(response)
		}
	}
	log.Print(err)
}

func runAgent(folder, details string) error {
	listener, err := listen(filepath.Join(folder, agentSocket))
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	RegisterRegistrationServer(server, agent{details: details})
	return server.Serve(listener)
}
