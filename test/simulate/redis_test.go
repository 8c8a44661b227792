package simulate_test

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// redisServer is an in-process Redis that can lose its data.
type redisServer struct {
	redis    *miniredis.Miniredis
	network  *network
	machine  *machine
	listener *listener

	clock   struct{ now, last *time.Time } // now is zero unless SetTime set it; last is that of the TTLs
	scripts *scripts
	closed  chan struct{} // by stop

	mu      sync.Mutex
	life    int                      // guarded by mu; grows with each start
	waiting map[string]chan struct{} // guarded by mu; closed when the stream grows
}

// startRedis serves a Redis at an address.
func startRedis(n *network, m *machine, addr string, run *scripts) (*redisServer, error) {
	s := &redisServer{redis: miniredis.NewMiniRedis(), network: n, machine: m, life: 1,
		scripts: run, closed: make(chan struct{}), waiting: map[string]chan struct{}{}}
	s.clock.now, s.clock.last = s.field("now").Addr().Interface().(*time.Time), s.field("lastTick").Addr().Interface().(*time.Time)
	l, err := n.listen(m, addr)
	if err != nil {
		return nil, err
	}
	s.listener = l.(*listener)
	first, err := s.redis.Dial() // starts it
	if err != nil {
		return nil, err
	}
	_ = first.Close()
	s.redis.ClockTTL(true)
	s.redis.Server().SetPreHook(s.answer)
	s.wrap("XADD", s.added)
	s.wrap("XREAD", s.blocking)
	s.wrap("XREADGROUP", s.blocking)
	s.wrap("EVAL", s.eval)
	s.wrap("EVALSHA", s.eval)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.(*conn).read = s.tick
			s.redis.Server().ServeConn(c)
		}
	}()
	return s, nil
}

// tick sets the clock of a server whose clock is wrong.
func (s *redisServer) tick() {
	s.network.mu.Lock()
	ahead := s.machine.ahead
	s.network.mu.Unlock()
	if ahead != 0 {
		s.redis.SetTime(time.Now().Add(ahead))
	}
}

// answer answers INFO server, which miniredis does not know, as a server that is known by
// its run id, and SCRIPT LOAD without parsing the script.
func (s *redisServer) answer(peer *server.Peer, command string, args ...string) bool {
	if !isNested(peer) {
		s.expire()
	}
	switch {
	case command == "INFO" && len(args) == 1 && args[0] == "server":
		s.mu.Lock()
		defer s.mu.Unlock()
		peer.WriteBulk(fmt.Sprintf("# Server\r\nredis_version:7.0.0\r\nrun_id:%040x\r\n", s.life))
	case command == "SCRIPT" && len(args) == 2 && strings.EqualFold(args[0], "load"):
		s.redis.Lock()
		sha := s.scripts.hash(args[1])
		s.known()[sha] = args[1]
		s.redis.Unlock()
		peer.WriteBulk(sha)
	default:
		return false
	}
	return true
}

// known returns the scripts that the server has, by name.
func (s *redisServer) known() map[string]string {
	return *s.field("scripts").Addr().Interface().(*map[string]string)
}

func (s *redisServer) stop() {
	_ = s.listener.Close()
	close(s.closed)
	s.redis.Close()
}

// redisCopy is what a server had at a time.
type redisCopy struct{ dbs reflect.Value }

// field returns an unexported field of the server. miniredis has no copies of whole
// databases.
func (s *redisServer) field(name string) reflect.Value {
	f := reflect.ValueOf(s.redis).Elem().FieldByName(name)
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem() //nolint:gosec // of this process
}

// copy returns a copy of all data.
func (s *redisServer) copy() redisCopy {
	s.redis.Lock()
	defer s.redis.Unlock()
	return redisCopy{s.clone(s.field("dbs"))}
}

// load replaces all data by those of a copy. The zero copy is an empty server.
func (s *redisServer) load(from redisCopy) {
	s.redis.Lock()
	defer s.redis.Unlock()
	dbs := s.field("dbs")
	if from.dbs.IsValid() {
		dbs.Set(s.clone(from.dbs))
	} else {
		dbs.Set(reflect.MakeMap(dbs.Type()))
	}
	s.field("scripts").Set(reflect.ValueOf(map[string]string{}))
}

// restart starts the server again with the data of a copy.
func (s *redisServer) restart(from redisCopy) {
	s.mu.Lock()
	s.life++
	s.mu.Unlock()
	s.load(from)
	s.network.cut(func(_, server *machine) bool { return server == s.machine })
}

// clone returns a deep copy of a value of miniredis.
func (s *redisServer) clone(v reflect.Value) reflect.Value {
	return (&cloner{server: reflect.ValueOf(s.redis), made: map[uintptr]reflect.Value{}}).clone(v)
}

type cloner struct {
	server reflect.Value // to which the copy belongs
	made   map[uintptr]reflect.Value
}

var timeType = reflect.TypeFor[time.Time]()

func (c *cloner) clone(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		if v.Type() == c.server.Type() {
			return c.server
		}
		if made, ok := c.made[v.Pointer()]; ok {
			return made
		}
		made := reflect.New(v.Type().Elem())
		c.made[v.Pointer()] = made
		c.fill(made.Elem(), v.Elem())
		return made
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		made := reflect.MakeMapWithSize(v.Type(), v.Len())
		for entries := v.MapRange(); entries.Next(); {
			made.SetMapIndex(entries.Key(), c.clone(entries.Value()))
		}
		return made
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		made := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			made.Index(i).Set(c.clone(v.Index(i)))
		}
		return made
	case reflect.Struct:
		made := reflect.New(v.Type()).Elem()
		c.fill(made, v)
		return made
	default:
		return v
	}
}

// fill copies a struct field by field, with unexported ones.
func (c *cloner) fill(into, from reflect.Value) {
	if from.Kind() != reflect.Struct || from.Type() == timeType || from.Type().PkgPath() == "sync" {
		if from.Type().PkgPath() != "sync" {
			into.Set(c.cloneOf(from))
		}
		return
	}
	if !from.CanAddr() {
		held := reflect.New(from.Type()).Elem()
		held.Set(from)
		from = held
	}
	for i := range from.NumField() {
		open := func(v reflect.Value) reflect.Value {
			f := v.Field(i)
			return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem() //nolint:gosec // of this process
		}
		if f := open(from); f.Type() == timeType {
			open(into).Set(f)
		} else if f.Type().PkgPath() != "sync" {
			open(into).Set(c.clone(f))
		}
	}
}

func (c *cloner) cloneOf(v reflect.Value) reflect.Value {
	if v.Type() == timeType {
		return v
	}
	return c.clone(v)
}
