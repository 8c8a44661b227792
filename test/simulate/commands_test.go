package simulate_test

import (
	"bufio"
	"bytes"
	"crypto/sha1" //nolint:gosec // the name of a script
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/alicebob/miniredis/v2/server"
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// This file replaces what is slow in miniredis: each write wakes all blocked readers, each
// script gets an interpreter of its own, and each command sorts all keys to let some expire.

// wrap replaces the handler of a command.
func (s *redisServer) wrap(command string, by func(next server.Cmd) server.Cmd) {
	meta := reflect.ValueOf(s.redis.Server()).Elem().FieldByName("cmds").MapIndex(reflect.ValueOf(command))
	handler := (*server.Cmd)(unsafe.Pointer(meta.Elem().FieldByName("handler").UnsafeAddr())) //nolint:gosec // of this process
	*handler = by(*handler)
}

// added wakes the readers of a stream after a command that appends to it.
func (s *redisServer) added(next server.Cmd) server.Cmd {
	return func(peer *server.Peer, command string, args []string) {
		next(peer, command, args)
		if len(args) > 0 {
			s.wake(args[0])
		}
	}
}

// wake wakes the blocked readers of a stream.
func (s *redisServer) wake(stream string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if woken := s.waiting[stream]; woken != nil {
		close(woken)
		delete(s.waiting, stream)
	}
}

// wait returns what wake closes next.
func (s *redisServer) wait(stream string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[stream] == nil {
		s.waiting[stream] = make(chan struct{})
	}
	return s.waiting[stream]
}

// nothingRead is the reply of a read that finds nothing.
const nothingRead = "*-1\r\n"

// blocking reads from one stream as XREAD and XREADGROUP with BLOCK do, and otherwise calls next.
func (s *redisServer) blocking(next server.Cmd) server.Cmd {
	return func(peer *server.Peer, command string, args []string) {
		at := slices.IndexFunc(args, func(a string) bool { return strings.EqualFold(a, "block") })
		if at < 0 || len(args) < at+4 {
			next(peer, command, args)
			return
		}
		ms, err := strconv.Atoi(args[at+1])
		if stream := len(args) - 2; err != nil || ms <= 0 || !strings.EqualFold(args[stream-1], "streams") || args[stream+1] == "$" {
			peer.WriteError("ERR the simulation reads one stream, from a known entry, for a bounded time")
			return
		}
		stream, args := args[len(args)-2], slices.Concat(args[:at], args[at+2:])
		timeout := time.NewTimer(time.Duration(ms) * time.Millisecond)
		defer timeout.Stop()
		var reply bytes.Buffer
		once := server.NewPeer(bufio.NewWriterSize(&reply, 256))
		once.Ctx = peer.Ctx
		for {
			woken := s.wait(stream)
			reply.Reset()
			next(once, command, args)
			if once.Flush(); reply.String() != nothingRead {
				peer.WriteRaw(reply.String())
				return
			}
			select {
			case <-woken:
			case <-timeout.C:
				peer.WriteRaw(nothingRead)
				return
			case <-s.closed:
				return
			}
			if peer.Closed() {
				return
			}
		}
	}
}

// isNested reports whether a peer is that of a script, which has the lock of the server.
func isNested(peer *server.Peer) bool {
	return peer.Ctx != nil && reflect.ValueOf(peer.Ctx).Elem().FieldByName("nested").Bool()
}

// expire advances the TTLs of keys to the present. miniredis does it if a key expires.
func (s *redisServer) expire() {
	s.redis.Lock()
	defer s.redis.Unlock()
	at := *s.clock.now
	if at.IsZero() {
		at = time.Now().UTC()
	}
	elapsed := at.Sub(*s.clock.last)
	if elapsed <= 0 {
		return
	}
	db := s.field("dbs").MapIndex(reflect.ValueOf(0)) // the product uses no other one
	if !db.IsValid() || db.Elem().FieldByName("hashTTLs").Len() > 0 {
		return
	}
	ttl := *(*map[string]time.Duration)(unsafe.Pointer(db.Elem().FieldByName("ttl").UnsafeAddr())) //nolint:gosec // of this process
	for _, left := range ttl {
		if left <= elapsed {
			return
		}
	}
	for key := range ttl {
		ttl[key] -= elapsed
	}
	*s.clock.last = at
}

// scripts runs scripts in one interpreter, for all stories one after the other. It is used with
// the lock of the server.
type scripts struct {
	names    map[string]string             // SHA-1 of each text
	compiled map[string]*lua.FunctionProto // by name
	state    *lua.LState                   // nil after an error
	calls    *lua.LTable                   // the table redis
	server   *server.Server
	reply    bytes.Buffer
	peer     *server.Peer // of the script's calls
	reader   *bufio.Reader
}

func newScripts() *scripts {
	return &scripts{names: map[string]string{}, compiled: map[string]*lua.FunctionProto{}}
}

// hash returns the name of a script.
func (r *scripts) hash(text string) string {
	if r.names[text] == "" {
		r.names[text] = fmt.Sprintf("%x", sha1.Sum([]byte(text))) //nolint:gosec // a name
	}
	return r.names[text]
}

// eval runs a script outside of MULTI, given as text or by its SHA-1.
func (s *redisServer) eval(next server.Cmd) server.Cmd {
	return func(peer *server.Peer, command string, args []string) {
		if peer.Ctx == nil || len(args) < 2 || !reflect.ValueOf(peer.Ctx).Elem().FieldByName("transaction").IsNil() {
			next(peer, command, args)
			return
		}
		s.redis.Lock()
		defer s.redis.Unlock()
		sha := args[0]
		if command == "EVAL" {
			sha = s.scripts.hash(args[0])
			s.known()[sha] = args[0]
		}
		text, ok := s.known()[sha]
		keys, err := strconv.Atoi(args[1])
		switch {
		case !ok:
			peer.WriteError("NOSCRIPT No matching script. Please use EVAL.")
			return
		case err != nil || keys < 0 || keys > len(args)-2:
			peer.WriteError("ERR Number of keys can't be greater than number of args")
			return
		}
		if err := s.scripts.run(s.redis.Server(), peer, sha, text, args[2:2+keys], args[2+keys:]); err != nil {
			s.scripts.state = nil
			peer.WriteError("ERR Error compiling script (new function): " + err.Error())
		}
	}
}

// open makes an interpreter.
func (r *scripts) open() {
	l := lua.NewState()
	r.state, r.calls = l, l.NewTable()
	r.calls.RawSetString("call", l.NewFunction(func(l *lua.LState) int { return r.call(l, true) }))
	r.calls.RawSetString("pcall", l.NewFunction(func(l *lua.LState) int { return r.call(l, false) }))
	r.calls.RawSetString("error_reply", l.NewFunction(func(l *lua.LState) int {
		l.Push(field(l, "err", l.CheckString(1)))
		return 1
	}))
	globals := l.G.Global
	globals.RawSetString("redis", r.calls)
	strict := l.NewTable()
	strict.RawSetString("__newindex", l.NewFunction(func(l *lua.LState) int {
		l.RaiseError("Script attempted to create global variable '%s'", l.Get(2).String())
		return 0
	}))
	strict.RawSetString("__index", l.NewFunction(func(l *lua.LState) int {
		l.RaiseError("Script attempted to access nonexistent global variable '%s'", l.Get(2).String())
		return 0
	}))
	globals.Metatable = strict
}

// field returns a table with one field, as errors and statuses are.
func field(l *lua.LState, name, text string) *lua.LTable {
	t := l.CreateTable(0, 1)
	t.RawSetString(name, lua.LString(text))
	return t
}

func (r *scripts) run(on *server.Server, peer *server.Peer, sha, text string, keys, args []string) error {
	proto := r.compiled[sha]
	if proto == nil {
		chunk, err := parse.Parse(strings.NewReader(text), "<string>")
		if err != nil {
			return err
		}
		if proto, err = lua.Compile(chunk, ""); err != nil {
			return err
		}
		r.compiled[sha] = proto
	}
	if r.state == nil {
		r.open()
	}
	if r.server != on {
		r.server, r.peer = on, server.NewPeer(bufio.NewWriterSize(&r.reply, 1024))
		ctx := reflect.New(reflect.TypeOf(peer.Ctx).Elem())
		*(*bool)(unsafe.Pointer(ctx.Elem().FieldByName("nested").UnsafeAddr())) = true //nolint:gosec // of this process
		r.peer.Ctx, r.reader = ctx.Interface(), bufio.NewReaderSize(&r.reply, 1024)
	}
	l := r.state
	list := func(name string, of []string) {
		t := l.CreateTable(len(of), 0)
		for _, s := range of {
			t.Append(lua.LString(s))
		}
		l.G.Global.RawSetString(name, t)
	}
	list("KEYS", keys)
	list("ARGV", args)
	l.Push(l.NewFunctionFromProto(proto))
	if err := l.PCall(0, 1, nil); err != nil {
		return err
	}
	answer(peer, l.Get(-1))
	l.Pop(1)
	return nil
}

// call runs a command of a script.
func (r *scripts) call(l *lua.LState, raise bool) int {
	args := make([]string, l.GetTop())
	for i := range args {
		args[i] = lua.LVAsString(l.Get(i + 1))
	}
	r.reply.Reset()
	r.server.Dispatch(r.peer, args)
	r.peer.Flush()
	r.reader.Reset(&r.reply)
	reply, err := server.ParseReply(r.reader)
	switch {
	case err == nil:
		l.Push(value(l, reply))
	case raise:
		l.Error(lua.LString(err.Error()), 1)
		return 0
	default:
		l.Push(field(l, "err", err.Error()))
	}
	return 1
}

// value returns a reply as a value of Lua.
func value(l *lua.LState, reply any) lua.LValue {
	switch v := reply.(type) {
	case nil:
		return lua.LFalse
	case int:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case server.Simple:
		return field(l, "ok", string(v))
	case []any:
		t := l.CreateTable(len(v), 0)
		for _, e := range v {
			t.Append(value(l, e))
		}
		return t
	default:
		panic(fmt.Sprintf("reply %T", v))
	}
}

// answer writes a value of Lua as a reply.
func answer(peer *server.Peer, v lua.LValue) {
	switch v := v.(type) {
	case lua.LBool:
		if v {
			peer.WriteInt(1)
		} else {
			peer.WriteNull()
		}
	case lua.LNumber:
		peer.WriteInt(int(v))
	case lua.LString:
		peer.WriteBulk(string(v))
	case *lua.LTable:
		if text := v.RawGetString("err"); text != lua.LNil {
			peer.WriteError(text.String())
			return
		}
		if text := v.RawGetString("ok"); text != lua.LNil {
			peer.WriteInline(text.String())
			return
		}
		n := 0
		for v.RawGetInt(n+1) != lua.LNil {
			n++
		}
		peer.WriteLen(n)
		for i := range n {
			answer(peer, v.RawGetInt(i+1))
		}
	default:
		peer.WriteNull()
	}
}
