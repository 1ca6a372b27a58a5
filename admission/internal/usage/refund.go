package usage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/quota"
)

// giveBackWithin bounds a refund after the request has failed.
const giveBackWithin = 10 * time.Second

// bill is what the quotas of a namespace have been charged for one request.
type bill struct {
	Namespace string    `json:"namespace"`
	Paid      []payment `json:"paid"`
}

// payment is what one quota has been charged.
type payment struct {
	Name string        `json:"name"`
	UID  string        `json:"uid"`
	Used quota.Amounts `json:"used"`
}

// encode returns the bill as a charge of a response; nil if nothing has been charged.
func (b bill) encode() ([]byte, error) {
	if len(b.Paid) == 0 {
		return nil, nil
	}
	return json.Marshal(b)
}

// Refund subtracts a charge from the usage of its quotas. If usage has been counted in between, which
// did not include the object, usage is too low until the quota controller counts again, which it does soon
// after usage has fallen.
func (p *Plugin) Refund(ctx context.Context, charge []byte) error {
	var b bill
	if err := json.Unmarshal(charge, &b); err != nil {
		return services.BadRequest("the charge cannot be read: %v", err)
	}
	defer p.lock(b.Namespace)()
	return p.refund(ctx, b)
}

// giveBack refunds what has been paid for a request that a later quota refuses, even if the request is
// cancelled. What fails is counted again by the quota controller.
func (p *Plugin) giveBack(ctx context.Context, namespace string, paid []payment) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackWithin)
	defer cancel()
	_ = p.refund(ctx, bill{namespace, paid})
}

// refund requires the lock of the namespace.
func (p *Plugin) refund(ctx context.Context, b bill) error {
	var errs []error
	for _, paid := range b.Paid {
		_, err := p.amend(ctx, b.Namespace, paid.Name, func(stored services.Object) (quota.Amounts, error) { return paid.backIn(stored) })
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// backIn returns status.used of a stored quota without the payment, nil if it is another quota of the name.
func (paid payment) backIn(stored services.Object) (quota.Amounts, error) {
	q, err := Parse(stored)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", stored.Key, err)
	}
	if stored.UID != paid.UID {
		return nil, nil
	}
	used := q.Status.Used.Plus(nil)
	for name, amount := range paid.Used.Of(used) {
		left := used[name].DeepCopy()
		if left.Sub(amount); left.Sign() < 0 {
			left = *resource.NewQuantity(0, amount.Format)
		}
		used[name] = left
	}
	return used, nil
}
