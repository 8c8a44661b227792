package path

import (
	"context"
	"fmt"
)

// IssueBatch issues path tokens to different users in one call of the script.
func (s *Service) IssueBatch(ctx context.Context, inputs []IssueInput) error {
	requests := make([]*request, len(inputs))
	for i, in := range inputs {
		name, err := newRequest()
		if err != nil {
			return err
		}
		requests[i] = &request{in, name, s.cfg.Captchas.Claim(in.scope(), in.Captcha)}
	}
	replies, err := s.send(ctx, requests)
	for _, r := range replies {
		if r.outcome != outcomeIssued {
			return fmt.Errorf("%s %s", r.outcome, r.detail)
		}
	}
	return err
}
