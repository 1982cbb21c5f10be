// Command discovery-peer speaks Akri's discovery contract from stubs that were generated from the
// same .proto file in another language: the other end in tests of what Moorage says on the wire.
//
//	discovery-peer handler FOLDER NAME    a handler: each line of the details is a device
//	discovery-peer agent FOLDER DETAILS   an agent: asks each handler that registers
//
// Either prints what it is told, one JSON object to a line.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

const agentSocket = "agent-registration.sock"

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: discovery-peer handler FOLDER NAME | agent FOLDER DETAILS")
	}
	run := map[string]func(folder, text string) error{"handler": runHandler, "agent": runAgent}[os.Args[1]]
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

type handler struct {
	UnimplementedDiscoveryHandlerServer
}

func (handler) Discover(request *DiscoverRequest, stream grpc.ServerStreamingServer[DiscoverResponse]) error {
	show(request)
	response := &DiscoverResponse{}
	for _, line := range strings.Fields(request.DiscoveryDetails) {
		response.Devices = append(response.Devices, &Device{
			Id:          line,
			Properties:  map[string]string{"PEER_LINE": line},
			Mounts:      []*Mount{{ContainerPath: "/in", HostPath: "/out", ReadOnly: true}},
			DeviceSpecs: []*DeviceSpec{{ContainerPath: "/dev/in", HostPath: "/dev/null", Permissions: "rw"}},
		})
	}
	if err := stream.Send(response); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func runHandler(folder, name string) error {
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
		Name: name, Endpoint: socket, EndpointType: RegisterDiscoveryHandlerRequest_UDS, Shared: true,
	}
	server := grpc.NewServer()
	RegisterDiscoveryHandlerServer(server, handler{})
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
