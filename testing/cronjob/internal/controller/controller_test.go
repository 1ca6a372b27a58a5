package controller

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	batch "example.org/cronjob/api/v1"
)

const (
	timeout  = "10s"
	interval = "10ms"
)

var _ = Describe("CronJob controller", func() {
	jobs := func(g Gomega, owner string) []batchv1.Job {
		var all batchv1.JobList
		g.Expect(k8sClient.List(ctx, &all, client.InNamespace("default"))).To(Succeed())
		var owned []batchv1.Job
		for _, job := range all.Items {
			if ref := metav1.GetControllerOf(&job); ref != nil && ref.Name == owner {
				owned = append(owned, job)
			}
		}
		return owned
	}

	It("creates a Job that is due, and counts it while it runs", func() {
		job := cronJob("due")
		Expect(k8sClient.Create(ctx, job)).To(Succeed())
		Eventually(func(g Gomega) { g.Expect(jobs(g, "due")).To(HaveLen(1)) }, timeout, interval).Should(Succeed())
		Eventually(func(g Gomega) {
			var now batch.CronJob
			g.Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(job), &now)).To(Succeed())
			g.Expect(now.Status.Active).To(HaveLen(1))
			g.Expect(now.Status.LastScheduleTime).NotTo(BeNil())
		}, timeout, interval).Should(Succeed())

		By("finishing the Job")
		child := jobs(Default, "due")[0]
		now := metav1.Now()
		child.Status.StartTime, child.Status.CompletionTime = &now, &now
		child.Status.Conditions = []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now}}
		Expect(k8sClient.Status().Update(ctx, &child)).To(Succeed())
		Eventually(func(g Gomega) {
			var now batch.CronJob
			g.Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(job), &now)).To(Succeed())
			g.Expect(now.Status.Active).To(BeEmpty())
		}, timeout, interval).Should(Succeed())
	})

	It("creates no Job while it is suspended", func() {
		job := cronJob("suspended")
		suspend := true
		job.Spec.Suspend = &suspend
		Expect(k8sClient.Create(ctx, job)).To(Succeed())
		Consistently(func(g Gomega) { g.Expect(jobs(g, "suspended")).To(BeEmpty()) }, "200ms", interval).Should(Succeed())
	})

	It("rejects what the schema forbids", func() {
		job := cronJob("wrong")
		job.Spec.ConcurrencyPolicy = "Sometimes"
		Expect(k8sClient.Create(ctx, job)).To(MatchError(ContainSubstring("concurrencyPolicy")))
	})

	It("lets users do what their roles allow", func() {
		user, err := testEnv.AddUser(envtest.User{Name: "bob", Groups: []string{"nobody"}}, nil)
		Expect(err).NotTo(HaveOccurred())
		c, err := client.New(user.Config(), client.Options{Scheme: k8sClient.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Create(ctx, cronJob("of-bob"))).To(MatchError(ContainSubstring(`User "bob" cannot create resource "cronjobs"`)))
	})

	for i := range 100 {
		It(fmt.Sprintf("reconciles CronJob %d", i), Label("many"), func() {
			name := fmt.Sprintf("many-%d", i)
			Expect(k8sClient.Create(ctx, cronJob(name))).To(Succeed())
			Eventually(func(g Gomega) { g.Expect(jobs(g, name)).To(HaveLen(1)) }, timeout, interval).Should(Succeed())
		})
	}
})
