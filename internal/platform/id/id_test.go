package id_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"seckill/internal/platform/id"
)

func TestPublicIdsComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]id.Kind{id.KindUser, id.KindSale, id.KindItem, id.KindOrder, id.KindTask, id.KindGoods}).Draw(t, "kind")
		u := id.New[uuid.UUID]()
		text := id.Format(kind, u)
		if !strings.HasPrefix(text, string(kind)+"_") {
			t.Fatalf("%s does not begin with %s_", text, kind)
		}
		back, err := id.Parse(kind, text)
		if err != nil || back != u {
			t.Fatalf("%s became %s: %v", text, back, err)
		}
	})
}

func TestAnIdOfAnotherKindIsMalformed(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "sal", "sal_", "_", "ord_" + strings.Repeat("0", 26), "sal_8zzzzzzzzzzzzzzzzzzzzzzzzz", "sal_" + strings.Repeat("u", 26),
		"sal_01h455vb4pex5vsknk084sn02\x00", strings.Repeat("a", 1000) + "_x", "sal_{s07}", id.New[id.Order]().Public(),
	} {
		if _, err := id.Parse(id.KindSale, text); !errors.Is(err, id.ErrMalformed) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestATaskCarriesItsShard(t *testing.T) {
	t.Parallel()
	seen := map[id.Task]bool{}
	for range 1000 {
		for shard := range id.Shards {
			u := id.NewTask(shard)
			got, err := id.TaskShard(u)
			if err != nil || got != shard || u.UUID().Version() != 7 || u.UUID().Variant() != uuid.RFC4122 {
				t.Fatalf("task %s: shard %d, %v", u, got, err)
			}
			if seen[u] {
				t.Fatalf("task %s came twice", u)
			}
			seen[u] = true
		}
	}
	sale, item, user := id.New[id.Sale](), id.New[id.Item](), id.New[id.User]()
	task := id.NewTaskOf(sale, item, user)
	if !id.MayBeOf(task, sale, item) || !id.IsOf(task, user) || id.IsOf(task, id.New[id.User]()) || task.UUID().Version() != 7 || task.UUID().Variant() != uuid.RFC4122 {
		t.Errorf("task %s of sale %s, item %s and user %s", task, sale, item, user)
	}
	if age := time.Since(id.TimeOf(task)); age < 0 || age > time.Hour {
		t.Errorf("task %s is %v old", task, age)
	}
	foreign := id.New[id.Task]()
	foreign[15] = 200
	if _, err := id.TaskShard(foreign); !errors.Is(err, id.ErrMalformed) {
		t.Errorf("an id that names no shard: %v", err)
	}
}
