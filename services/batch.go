package services

import (
	"context"
	"sync"
)

// maxBatch bounds the requests of one call to Batched.
const maxBatch = 256

// Batched returns an AdmissionBatch that reviews the requests of a batch concurrently, each as
// if it had come alone.
func Batched(a Admission) AdmissionBatch { return batched{a} }

type batched struct{ each Admission }

// MutateBatch implements AdmissionBatch. The error is BadRequest (400) for more than 256
// requests.
func (b batched) MutateBatch(ctx context.Context, requests []AdmissionRequest) ([]AdmissionResult, error) {
	return reviewAll(ctx, requests, b.each.Mutate)
}

// ValidateBatch implements AdmissionBatch, with the error of MutateBatch.
func (b batched) ValidateBatch(ctx context.Context, requests []AdmissionRequest) ([]AdmissionResult, error) {
	return reviewAll(ctx, requests, b.each.Validate)
}

func reviewAll(ctx context.Context, requests []AdmissionRequest, review func(context.Context, AdmissionRequest) (AdmissionResponse, error)) ([]AdmissionResult, error) {
	if len(requests) > maxBatch {
		return nil, BadRequest("the batch has %d requests; at most %d are allowed", len(requests), maxBatch)
	}
	results := make([]AdmissionResult, len(requests))
	var all sync.WaitGroup
	for i, r := range requests {
		all.Go(func() {
			results[i].UID = r.UID
			results[i].Response, results[i].Err = review(ctx, r)
		})
	}
	all.Wait()
	return results, nil
}
