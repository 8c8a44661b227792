import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { tabStore } from '../src/api/storage';
import type { Phase, Sale } from '@seckill/client/types';
import { setLanguage } from '../src/i18n/text';
import { Attempts } from '../src/pages/attempts';

beforeEach(() => setLanguage('en'));
afterEach(() => {
  render(null, document.body);
  tabStore.removeItem('refused:sal_1');
});

const shown = async (phase: Phase, order: object | null = null): Promise<boolean> => {
  await act(() => render(<Attempts sale={{ id: 'sal_1', items: [], viewer: { order } } as unknown as Sale} phase={phase} />, document.body));
  return document.querySelector('[data-attempts]') !== null;
};

test('why a buyer got nothing is shown after a refusal, and where nothing is left to buyers without an order', async () => {
  expect(await shown('UPCOMING')).toBe(false);
  expect(await shown('LIVE')).toBe(false);
  expect(await shown('SOLD_OUT')).toBe(true);
  expect(await shown('SOLD_OUT', { id: 'ord_1' })).toBe(false);
  expect(await shown('ENDED')).toBe(true);
  expect(await shown('ENDED', { id: 'ord_1' })).toBe(false);
  tabStore.setItem('refused:sal_1', 'yes');
  expect(await shown('LIVE')).toBe(true);
  expect(await shown('LIVE', { id: 'ord_1', status: 'PAID' })).toBe(false); // a later attempt won
  expect(await shown('LIVE', { id: 'ord_1', status: 'EXPIRED' })).toBe(true);
});
