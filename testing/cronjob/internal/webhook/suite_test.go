package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	batch "example.org/cronjob/api/v1"
)

var (
	ctx       context.Context
	cancel    context.CancelFunc
	testEnv   *envtest.Environment
	k8sClient client.Client
)

func TestWebhooks(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Webhook Suite")
}

var _ = BeforeSuite(func() {
	ctx, cancel = context.WithCancel(context.Background())
	Expect(batch.AddToScheme(scheme.Scheme)).To(Succeed())
	testEnv = &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{filepath.Join("..", "..", "config", "webhook")}},
	}
	cfg, err := testEnv.Start()
	Expect(err).NotTo(HaveOccurred())
	k8sClient, err = client.New(cfg, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	o := &testEnv.WebhookInstallOptions
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: scheme.Scheme, Metrics: server.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: o.LocalServingHost, Port: o.LocalServingPort, CertDir: o.LocalServingCertDir})})
	Expect(err).NotTo(HaveOccurred())
	Expect(Setup(mgr)).To(Succeed())
	go func() {
		defer GinkgoRecover()
		Expect(mgr.Start(ctx)).To(Succeed())
	}()
	Eventually(func() error {
		conn, err := tls.Dial("tcp", net.JoinHostPort(o.LocalServingHost, fmt.Sprint(o.LocalServingPort)), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return err
		}
		return conn.Close()
	}, "10s", "10ms").Should(Succeed())
})

var _ = AfterSuite(func() {
	cancel()
	Expect(testEnv.Stop()).To(Succeed())
})

var _ = Describe("CronJob webhooks", func() {
	cronJob := func(name, schedule string) *batch.CronJob {
		return &batch.CronJob{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: batch.CronJobSpec{
			Schedule: schedule, JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "a", Image: "a"}}}}}}}}
	}

	It("sets defaults", func() {
		job := cronJob("defaults", "0 * * * *")
		Expect(k8sClient.Create(ctx, job)).To(Succeed())
		Expect(job.Spec.ConcurrencyPolicy).To(Equal(batch.AllowConcurrent))
		Expect(job.Spec.Suspend).To(HaveValue(BeFalse()))
	})

	It("rejects a wrong schedule, also in an update", func() {
		Expect(k8sClient.Create(ctx, cronJob("wrong", "often"))).To(MatchError(ContainSubstring("spec.schedule")))
		job := cronJob("changed", "0 * * * *")
		Expect(k8sClient.Create(ctx, job)).To(Succeed())
		job.Spec.Schedule = "often"
		Expect(k8sClient.Update(ctx, job)).To(MatchError(ContainSubstring("spec.schedule")))
	})
})
