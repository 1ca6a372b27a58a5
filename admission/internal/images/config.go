package images

import (
	"time"

	"github.com/portico-platform/portico/admission/internal/config"
	"github.com/portico-platform/portico/services/kit/kubeconfig"
	"github.com/portico-platform/portico/services/webhook"
)

// Config is the configuration of the plugin.
type Config struct {
	Remote       webhook.Config
	AllowTTL     time.Duration // how long a permission is kept; 0 is not at all
	DenyTTL      time.Duration // how long a refusal is kept; 0 is not at all
	RetryBackoff time.Duration // before the first retry
	DefaultAllow bool          // whether images are permitted when there is no answer
}

// Parse reads the configuration of the plugin and the kubeconfig file that it names.
func Parse(d config.Document) (Config, error) {
	var read struct {
		ImagePolicy struct {
			KubeConfigFile string `json:"kubeConfigFile"`
			AllowTTL       int64  `json:"allowTTL"`
			DenyTTL        int64  `json:"denyTTL"`
			RetryBackoff   int64  `json:"retryBackoff"`
			DefaultAllow   bool   `json:"defaultAllow"`
		} `json:"imagePolicy"`
	}
	if err := d.Decode(&read); err != nil {
		return Config{}, err
	}
	given := read.ImagePolicy
	c := Config{DefaultAllow: given.DefaultAllow}
	for _, x := range []struct {
		field     string
		value     int64
		unit      time.Duration
		min, max  time.Duration
		otherwise time.Duration
		into      *time.Duration
	}{
		{"retryBackoff", given.RetryBackoff, time.Millisecond, time.Nanosecond, 5 * time.Minute, 500 * time.Millisecond, &c.RetryBackoff},
		{"allowTTL", given.AllowTTL, time.Second, time.Second, 30 * time.Minute, 5 * time.Minute, &c.AllowTTL},
		{"denyTTL", given.DenyTTL, time.Second, time.Second, 30 * time.Minute, 30 * time.Second, &c.DenyTTL},
	} {
		switch {
		case x.value == -1: // none
		case x.value == 0:
			*x.into = x.otherwise
		case x.value < 0 || x.value > int64(x.max/x.unit):
			return c, d.Invalid("imagePolicy."+x.field, "valid value is between %v and %v, got %d times %v", x.min, x.max, x.value, x.unit)
		default:
			*x.into = time.Duration(x.value) * x.unit
		}
	}
	if given.KubeConfigFile == "" {
		return c, d.Invalid("imagePolicy.kubeConfigFile", "required value")
	}
	file, err := kubeconfig.Read(d.Path(given.KubeConfigFile))
	if err == nil {
		c.Remote, err = file.Remote()
	}
	if err != nil {
		return c, d.Invalid("imagePolicy.kubeConfigFile", "%v", err)
	}
	return c, nil
}
