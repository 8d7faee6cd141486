package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/internal/host/config"
)

// renewTime is how long before its end a certificate should have been replaced.
const renewTime = 14 * 24 * time.Hour

// certificate looks at the certificate that a configuration names.
func (e *examination) certificate(c config.Server) {
	if !c.Encrypted() {
		return
	}
	pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
	detail := ""
	if err == nil {
		detail, err = lasts(pair.Leaf, time.Now())
	}
	e.add("certificate", false, err, detail)
}

// lasts says until when a certificate may be used. The error is that it may not, or not for
// much longer.
func lasts(leaf *x509.Certificate, now time.Time) (string, error) {
	if leaf == nil {
		return "", errors.New("its end is not known")
	}
	end := leaf.NotAfter.UTC().Format(time.RFC3339)
	switch left := leaf.NotAfter.Sub(now); {
	case now.Before(leaf.NotBefore):
		return "", fmt.Errorf("it is not valid before %s", leaf.NotBefore.UTC().Format(time.RFC3339))
	case left <= 0:
		return "", fmt.Errorf("it expired at %s; a new one in its place is used without a restart", end)
	case left < renewTime:
		return "", fmt.Errorf("it expires at %s, in %s; a new one in its place is used without a restart", end, left.Round(time.Minute))
	default:
		return fmt.Sprintf("until %s, %d days", end, int(left/(24*time.Hour))), nil
	}
}
