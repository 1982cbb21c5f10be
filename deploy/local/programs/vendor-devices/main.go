// Command vendor-devices is the DRA driver of a vendor that Moorage knows nothing of.
//
// Tests and demos run it on nodes of the local cluster, one process for each driver name, beside
// Moorage's own driver. It is made of upstream's helper, as vendors' drivers are, and publishes
// whatever hardware its profile describes: GPUs that are partitioned by counters, GPUs that
// several claims divide by memory, NICs by bandwidth. The kubelet prepares claims with it for real;
// there is no hardware behind it, so that all that a container gets is a variable for each device.
//
//	vendor-devices --driver-name=gpu.example.com --profile=gpus.yaml
//
// It ends with the reason if the API server refuses its slices or drops fields of them.
package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/klog/v2"
)

type options struct {
	driver, node, profile string
}

func main() {
	var chosen options
	klog.InitFlags(nil)
	flag.StringVar(&chosen.driver, "driver-name", "", "the driver's name, such as gpu.example.com")
	flag.StringVar(&chosen.node, "node-name", os.Getenv("NODE_NAME"), "the node that it runs on, by default $NODE_NAME")
	flag.StringVar(&chosen.profile, "profile", "", "a file in YAML or JSON with the slices of the node's hardware")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, chosen); err != nil {
		klog.ErrorS(err, "Ending")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
}

func run(ctx context.Context, chosen options) error {
	hardware, err := readProfile(chosen.profile)
	if err != nil {
		return err
	}
	client, err := newClient()
	if err != nil {
		return err
	}
	plugin, err := newPlugin(chosen.driver)
	if err != nil {
		return err
	}
	// Of the socket that the helper serves; the helper wants it to be there.
	if err := os.MkdirAll(filepath.Join(kubeletplugin.KubeletPluginsDir, chosen.driver), 0o750); err != nil {
		return err
	}
	helper, err := kubeletplugin.Start(ctx, plugin,
		kubeletplugin.DriverName(chosen.driver),
		kubeletplugin.NodeName(chosen.node),
		kubeletplugin.KubeClient(client),
		kubeletplugin.HealthService(false),
	)
	if err != nil {
		return err
	}
	defer helper.Stop()
	if err := helper.PublishResources(ctx, hardware.resources(chosen.node)); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-plugin.fatal:
		return err
	}
}

// newClient is of $KUBECONFIG, or of the ServiceAccount of a pod.
func newClient() (kubernetes.Interface, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}
