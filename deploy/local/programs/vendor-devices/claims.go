package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/klog/v2"
	"tags.cncf.io/container-device-interface/pkg/cdi"
	cdispec "tags.cncf.io/container-device-interface/specs-go"
)

// cdiClass is of all devices: a vendor, which is the driver's name, needs no other.
const cdiClass = "device"

// plugin is what upstream's helper calls. It keeps nothing in memory: a claim is prepared while
// its CDI file is there, so that another process may unprepare it.
type plugin struct {
	driver string
	files  *cdi.Cache
	fatal  chan error
}

func newPlugin(driver string) (*plugin, error) {
	files, err := cdi.NewCache(cdi.WithSpecDirs(kubeletplugin.DefaultCDIDir), cdi.WithAutoRefresh(false))
	if err != nil {
		return nil, err
	}
	return &plugin{driver: driver, files: files, fatal: make(chan error, 1)}, nil
}

func (p *plugin) PrepareResourceClaims(ctx context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	prepared := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		prepared[claim.UID] = p.prepare(claim)
		klog.FromContext(ctx).Info("Prepared", "claim", klog.KObj(claim), "result", prepared[claim.UID])
	}
	return prepared, nil
}

func (p *plugin) UnprepareResourceClaims(ctx context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	unprepared := map[types.UID]error{}
	for _, claim := range claims {
		unprepared[claim.UID] = p.files.RemoveSpec(p.fileOf(claim.UID))
		klog.FromContext(ctx).Info("Unprepared", "claim", claim.NamespacedName, "err", unprepared[claim.UID])
	}
	return unprepared, nil
}

// HandleError ends the program where trying again cannot help, which upstream's helper does not
// do for slices that the API server refuses or takes without some of their fields.
func (p *plugin) HandleError(ctx context.Context, err error, message string) {
	runtime.HandleErrorWithContext(ctx, err, message)
	var dropped *resourceslice.DroppedFieldsError
	if errors.Is(err, kubeletplugin.ErrRecoverable) && !errors.As(err, &dropped) && !apierrors.IsInvalid(err) {
		return
	}
	select {
	case p.fatal <- fmt.Errorf("%s: %w", message, err):
	default: // The first one is the reason.
	}
}

func (p *plugin) WatchHealthStatus(context.Context, chan<- kubeletplugin.DeviceHealthReport) error {
	return kubeletplugin.ErrHealthNotSupported
}

func (p *plugin) prepare(claim *resourceapi.ResourceClaim) kubeletplugin.PrepareResult {
	file := &cdispec.Spec{Version: cdispec.CurrentVersion, Kind: p.driver + "/" + cdiClass}
	var devices []kubeletplugin.Device
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != p.driver {
			continue
		}
		name := string(claim.UID) + "-" + nameOf(result)
		file.Devices = append(file.Devices, cdispec.Device{
			Name:           name,
			ContainerEdits: cdispec.ContainerEdits{Env: []string{variable(result)}},
		})
		devices = append(devices, kubeletplugin.Device{
			Requests:     []string{result.Request},
			PoolName:     result.Pool,
			DeviceName:   result.Device,
			ShareID:      result.ShareID,
			CDIDeviceIDs: []string{file.Kind + "=" + name},
		})
	}
	if err := p.files.WriteSpec(file, p.fileOf(claim.UID)); err != nil {
		return kubeletplugin.PrepareResult{Err: fmt.Errorf("write the CDI file of the claim: %w", err)}
	}
	return kubeletplugin.PrepareResult{Devices: devices}
}

func (p *plugin) fileOf(claim types.UID) string {
	return cdi.GenerateTransientSpecName(p.driver, cdiClass, string(claim)) + ".json"
}

// nameOf tells a device, or one share of it, from all others of its driver on this node.
func nameOf(result resourceapi.DeviceRequestAllocationResult) string {
	if result.ShareID == nil {
		return result.Device
	}
	return result.Device + "-" + string(*result.ShareID)
}

// variable tells a container one device that it got, and how much of it:
//
//	DEVICE_GPU_EXAMPLE_COM_GPU_1_<share>=gpu.example.com/node-a/gpu-1 memory=10Gi
func variable(result resourceapi.DeviceRequestAllocationResult) string {
	told := []string{strings.Join([]string{result.Driver, result.Pool, result.Device}, "/")}
	for _, capacity := range slices.Sorted(maps.Keys(result.ConsumedCapacity)) {
		consumed := result.ConsumedCapacity[capacity]
		told = append(told, fmt.Sprintf("%s=%s", capacity, consumed.String()))
	}
	name := strings.NewReplacer(".", "_", "-", "_").Replace(result.Driver + "_" + nameOf(result))
	return "DEVICE_" + strings.ToUpper(name) + "=" + strings.Join(told, " ")
}
