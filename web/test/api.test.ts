import { describe, expect, test } from 'vitest';
import { better, measure } from '@seckill/client/clock';
import { splitEvents } from '@seckill/client/events';
import { Fault, faultOf } from '@seckill/client/fault';
import { RevisionStore } from '../src/api/store';
import { T0 } from './shop';

describe('the store', () => {
  test('drops lower revisions and takes equal ones', () => {
    const store = new RevisionStore<{ revision: number; text: string }>();
    store.put('a', { revision: 3, text: 'three' });
    store.put('a', { revision: 2, text: 'two' });
    expect(store.of('a').value!.text).toBe('three');
    store.put('a', { revision: 3, text: 'three again' });
    expect(store.of('a').value!.text).toBe('three again');
  });
  test('keeps ids apart', () => {
    const store = new RevisionStore<{ revision: number }>();
    store.put('a', { revision: 9 });
    store.put('b', { revision: 1 });
    expect(store.of('b').value).toEqual({ revision: 1 });
  });
});

describe('the clock', () => {
  test('takes the middle of the exchange and half of it as the bound', () => {
    const reading = measure(new Date(T0).toISOString(), 1_000, 1_040);
    expect(reading).toEqual({ offset: T0 - 1_020, bound: 20 });
  });
  test('keeps the sample with the least round trip', () => {
    const good = { offset: 1, bound: 5 };
    expect(better(good, { offset: 2, bound: 9 })).toBe(good);
    expect(better({ offset: 2, bound: 9 }, good)).toBe(good);
    expect(better(null, good)).toBe(good);
  });
});

describe('an event stream', () => {
  test('is split into whole events, whatever the pieces', () => {
    const text = 'event: next\ndata: {"a":1}\n\n: ping\n\nevent: complete\ndata:\n\n';
    for (let cut = 0; cut <= text.length; cut++) {
      const first = splitEvents(text.slice(0, cut));
      const second = splitEvents(first.rest + text.slice(cut));
      expect([...first.events, ...second.events]).toEqual([
        { event: 'next', data: '{"a":1}' },
        { event: 'complete', data: '' },
      ]);
      expect(second.rest).toBe('');
    }
  });
});

describe('a fault', () => {
  test('carries the server’s code, id and wait', () => {
    const fault = faultOf([{ message: 'm', extensions: { code: 'RATE_LIMITED', retryAfterMs: 700, errorId: 'e1' } }]);
    expect(fault).toMatchObject({ code: 'RATE_LIMITED', retryAfterMs: 700, errorId: 'e1', transient: true });
  });
  test('of another kind does not pass by itself', () => {
    expect(new Fault('FORBIDDEN', '').transient).toBe(false);
    expect(faultOf([{ message: 'm' }]).code).toBe('INTERNAL');
  });
});
