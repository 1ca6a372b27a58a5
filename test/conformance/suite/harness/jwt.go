package harness

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

var b64 = base64.RawURLEncoding

// SignJWT signs claims with RS256.
func SignJWT(key *rsa.PrivateKey, keyID string, claims Obj) string {
	header := Obj{"alg": "RS256", "typ": "JWT"}
	if keyID != "" {
		header["kid"] = keyID
	}
	text := b64.EncodeToString(header.JSON()) + "." + b64.EncodeToString(claims.JSON())
	sum := sha256.Sum256([]byte(text))
	return text + "." + b64.EncodeToString(must(rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])))
}

// verifyJWT reports whether a JWT is signed with RS256 by the key.
func verifyJWT(key *rsa.PublicKey, token string) bool {
	i := strings.LastIndexByte(token, '.')
	if i < 0 {
		return false
	}
	sum := sha256.Sum256([]byte(token[:i]))
	sig, err := b64.DecodeString(token[i+1:])
	return err == nil && rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], sig) == nil
}

// VerifyDetachedHS256 checks a detached JWS ("header..signature") over payload
// with a shared secret, and returns its header and whether it is right.
func VerifyDetachedHS256(jws string, payload []byte, secret string) (header Obj, ok bool) {
	parts := strings.Split(jws, ".")
	header = Obj{}
	if len(parts) != 3 || parts[1] != "" {
		return header, false
	}
	h, err := b64.DecodeString(parts[0])
	if err != nil || json.Unmarshal(h, &header) != nil {
		return header, false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(parts[0] + "." + b64.EncodeToString(payload)))
	sig, err := b64.DecodeString(parts[2])
	return header, err == nil && hmac.Equal(sig, mac.Sum(nil)) && header.Str("alg") == "HS256"
}

// IDToken is an OIDC id_token of the suite's issuer; claims override the
// defaults (iss, aud, sub, iat, exp), and a nil claim is left out.
func (f *Fixtures) IDToken(claims Obj) string { return f.OIDC.sign(f.OIDC.key, claims) }

// ForgedIDToken is one signed by a key the issuer does not publish.
func (f *Fixtures) ForgedIDToken(claims Obj) string { return f.OIDC.sign(f.OIDC.stranger, claims) }

func (o *oidcIssuer) sign(key *rsa.PrivateKey, claims Obj) string {
	now := time.Now().Unix()
	all := Obj{"iss": o.URL, "aud": o.ClientID, "sub": "nobody", "iat": now, "exp": now + 600}
	for k, v := range claims {
		if v == nil {
			delete(all, k)
		} else {
			all[k] = v
		}
	}
	return SignJWT(key, o.keyID, all)
}
