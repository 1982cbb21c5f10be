package main

import (
	"fmt"
	"os"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"sigs.k8s.io/yaml"
)

// profile is the hardware of a node, in the words of the ResourceSlices that offer it:
//
//	slices:
//	- sharedCounters:
//	  - {name: gpu-0, counters: {memory: {value: 80Gi}}}
//	- devices:
//	  - name: gpu-0-half
//	    consumesCounters: [{counterSet: gpu-0, counters: {memory: {value: 40Gi}}}]
//
// Counter sets and the devices that consume of them stand in slices of their own: the API server
// refuses a slice that has both. How many slices a pool has is counted by upstream's helper.
type profile struct {
	Slices []slice `json:"slices"`
}

type slice struct {
	SharedCounters []resourceapi.CounterSet `json:"sharedCounters,omitempty"`
	Devices        []resourceapi.Device     `json:"devices,omitempty"`
}

func readProfile(path string) (profile, error) {
	var found profile
	text, err := os.ReadFile(path)
	if err != nil {
		return found, err
	}
	if err := yaml.UnmarshalStrict(text, &found); err != nil {
		return found, fmt.Errorf("profile %s: %w", path, err)
	}
	return found, nil
}

// resources is one pool: all that this node has of the vendor.
func (p profile) resources(pool string) resourceslice.DriverResources {
	var published []resourceslice.Slice
	for _, one := range p.Slices {
		published = append(published, resourceslice.Slice{
			SharedCounters: one.SharedCounters,
			Devices:        one.Devices,
		})
	}
	return resourceslice.DriverResources{
		Pools: map[string]resourceslice.Pool{pool: {Slices: published}},
	}
}
