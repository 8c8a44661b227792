package media

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// S3 stores files in a bucket of any S3-compatible store.
type S3 struct {
	client *minio.Client
	bucket string
	prefix string
}

// openS3 returns a store in an existing bucket:
// s3://key:secret@host:port/bucket/prefix?region=…&insecure=true. Without a key it
// reads the usual AWS_ variables. It does not connect yet.
func openS3(address string) (*S3, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "s3" || u.Host == "" {
		return nil, fmt.Errorf("store of pictures: want s3://host/bucket")
	}
	bucket, prefix, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if bucket == "" {
		return nil, fmt.Errorf("store of pictures: the bucket is missing")
	}
	keys := credentials.NewEnvAWS()
	if secret, ok := u.User.Password(); ok {
		keys = credentials.NewStaticV4(u.User.Username(), secret, "")
	}
	client, err := minio.New(u.Host, &minio.Options{
		Creds: keys, Secure: u.Query().Get("insecure") != "true", Region: u.Query().Get("region"),
		BucketLookup: minio.BucketLookupAuto,
	})
	if err != nil {
		return nil, fmt.Errorf("store of pictures: %w", err)
	}
	if prefix != "" {
		prefix += "/"
	}
	return &S3{client: client, bucket: bucket, prefix: prefix}, nil
}

// Put stores a file.
func (s *S3) Put(ctx context.Context, name, contentType string, body []byte) error {
	_, err := s.client.PutObject(ctx, s.bucket, s.prefix+name, bytes.NewReader(body), int64(len(body)),
		minio.PutObjectOptions{ContentType: contentType, DisableMultipart: true})
	if err != nil {
		return fmt.Errorf("keep %s: %w", name, err)
	}
	return nil
}

// Get returns a file.
func (s *S3) Get(ctx context.Context, name string) ([]byte, error) {
	object, err := s.client.GetObject(ctx, s.bucket, s.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer func() { _ = object.Close() }()
	body, err := io.ReadAll(io.LimitReader(object, MaxBytes))
	if err != nil {
		if code := minio.ToErrorResponse(err).Code; code == minio.NoSuchKey {
			return nil, fmt.Errorf("read %s: %w", name, ErrNotFound)
		}
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return body, nil
}

// Open returns the store at an address: s3://… as for OpenS3, InMemory, otherwise a folder.
// closeStore closes it.
func Open(address string) (store Store, closeStore func() error, err error) {
	if address == InMemory {
		return NewMemory(), func() error { return nil }, nil
	}
	if strings.HasPrefix(address, "s3://") {
		s, err := openS3(address)
		return s, func() error { return nil }, err
	}
	d, err := openDisk(strings.TrimPrefix(address, "file://"))
	if err != nil {
		return nil, nil, err
	}
	return d, d.Close, nil
}
