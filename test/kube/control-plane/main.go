// control-plane is one program that plays every part of a small Kubernetes control plane, so that tests need to build
// and keep a single binary:
//
//	control-plane etcd|apiserver|scheduler|controller-manager|kwok|stages [flags]
//
// Every part takes the flags of the upstream program of that name; stages prints KWOK's own Stage objects.
package main

import (
	"fmt"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

var parts = map[string]func(){
	"etcd":               func() { etcdmain.Main(os.Args) },
	"apiserver":          func() { os.Exit(cli.Run(apiserver.NewAPIServerCommand())) },
	"scheduler":          func() { os.Exit(cli.Run(scheduler.NewSchedulerCommand())) },
	"controller-manager": func() { os.Exit(cli.Run(controllers.NewControllerManagerCommand())) },
	"kwok":               runKwok,
	"stages":             printStages,
}

func main() {
	if len(os.Args) < 2 || parts[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: control-plane etcd|apiserver|scheduler|controller-manager|kwok|stages [flags]")
		os.Exit(2)
	}
	run := parts[os.Args[1]]
	os.Args = os.Args[1:]
	run()
}
