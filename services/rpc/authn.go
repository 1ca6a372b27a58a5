package rpc

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/portico-platform/portico/services"
	pb "github.com/portico-platform/portico/services/rpc/porticov1"
)

type authnServer struct {
	pb.UnsafeAuthnServer
	impl services.Authn
}

func RegisterAuthn(s grpc.ServiceRegistrar, impl services.Authn) {
	pb.RegisterAuthnServer(s, authnServer{impl: impl})
}

func (s authnServer) Authenticate(ctx context.Context, m *pb.Credentials) (*pb.Authentication, error) {
	a, err := s.impl.Authenticate(ctx, services.Credentials{
		Certificates: m.GetCertificates(), BearerToken: string(m.GetBearerToken()),
		Headers: headersIn(m.GetHeaders()), Audiences: m.GetAudiences(), NotOlderThan: m.GetNotOlderThan(), Path: string(m.GetPath()),
	})
	if err != nil {
		return nil, errorOut(err)
	}
	return &pb.Authentication{
		User: userOut(a.User), Audiences: a.Audiences,
		CacheFor: durationpb.New(a.CacheFor), ProxyHeaders: a.ProxyHeaders, WarnAfter: secondsOut(a.WarnAfter),
		Credential: credentialOut(a.Credential), Legacy: legacyOut(a.Legacy),
	}, nil
}

type authnClient struct{ peer pb.AuthnClient }

func NewAuthn(c grpc.ClientConnInterface) services.Authn {
	return authnClient{pb.NewAuthnClient(c)}
}

func (c authnClient) Authenticate(ctx context.Context, r services.Credentials) (services.Authentication, error) {
	m, err := c.peer.Authenticate(ctx, &pb.Credentials{
		Certificates: r.Certificates, BearerToken: []byte(r.BearerToken),
		Headers: headersOut(r.Headers), Audiences: r.Audiences, NotOlderThan: r.NotOlderThan, Path: []byte(r.Path),
	})
	if err != nil {
		return services.Authentication{}, errorIn(ctx, "authn", err)
	}
	if m.GetUser().GetName() == "" {
		return services.Authentication{}, faultf("authn: the response has no user name")
	}
	return services.Authentication{
		User: userIn(m.GetUser()), Audiences: m.GetAudiences(),
		CacheFor: m.GetCacheFor().AsDuration(), ProxyHeaders: m.GetProxyHeaders(), WarnAfter: secondsIn(m.GetWarnAfter()),
		Credential: credentialIn(m.GetCredential()), Legacy: legacyIn(m.GetLegacy()),
	}, nil
}

func legacyOut(t *services.LegacyToken) *pb.LegacyToken {
	if t == nil {
		return nil
	}
	return &pb.LegacyToken{Secret: keyOut(t.Secret), Uid: t.UID, LastUsed: t.LastUsed, Generated: t.Generated}
}

func legacyIn(m *pb.LegacyToken) *services.LegacyToken {
	if m == nil {
		return nil
	}
	return &services.LegacyToken{Secret: keyIn(m.GetSecret()), UID: m.GetUid(), LastUsed: m.GetLastUsed(), Generated: m.GetGenerated()}
}

func credentialOut(c services.Credential) *pb.Credential {
	return &pb.Credential{
		Method: c.Method, Expires: secondsOut(c.Expires), Issued: secondsOut(c.Issued),
		TokenId: c.TokenID, Serial: c.Serial, KeyId: c.KeyID, Source: c.Source,
		Objects: each(c.Objects, func(o services.BoundObject) *pb.BoundObject {
			return &pb.BoundObject{Key: keyOut(o.Key), Uid: o.UID}
		}),
	}
}

func credentialIn(m *pb.Credential) services.Credential {
	return services.Credential{
		Method: m.GetMethod(), Expires: secondsIn(m.GetExpires()), Issued: secondsIn(m.GetIssued()),
		TokenID: m.GetTokenId(), Serial: m.GetSerial(), KeyID: m.GetKeyId(), Source: m.GetSource(),
		Objects: each(m.GetObjects(), func(o *pb.BoundObject) services.BoundObject {
			return services.BoundObject{Key: keyIn(o.GetKey()), UID: o.GetUid()}
		}),
	}
}

func secondsOut(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func secondsIn(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

func headersOut(headers map[string][]string) []*pb.Header {
	var list []*pb.Header
	for name, values := range headers {
		list = append(list, &pb.Header{Name: name, Values: each(values, func(v string) []byte { return []byte(v) })})
	}
	return list
}

func headersIn(list []*pb.Header) map[string][]string {
	headers := make(map[string][]string, len(list))
	for _, h := range list {
		headers[h.GetName()] = each(h.GetValues(), func(v []byte) string { return string(v) })
	}
	return headers
}

var (
	_ pb.AuthnServer = authnServer{}
	_ services.Authn = authnClient{}
)
