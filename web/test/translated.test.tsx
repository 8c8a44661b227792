import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test } from 'vitest';
import { LiveRegion, readOut } from '../src/ui/live-region';
import { PhaseChip, StockBar } from '../src/ui/bits';
import { Opening } from '../src/ui/countdown';
import { setLanguage } from '../src/i18n/text';
import { StatusChip } from '../src/pages/status';
import { sale } from './shop';

/** Replaces text nodes as the translation of a browser does, except inside `.notranslate`. */
function translate(): void {
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found: Text[] = [];
  while (walk.nextNode()) found.push(walk.currentNode as Text);
  for (const text of found) {
    if (!text.data.trim() || text.parentElement!.closest('.notranslate')) continue;
    const font = document.createElement('font');
    font.textContent = 'übersetzt';
    text.replaceWith(font);
  }
}

test('what changes is shown in a page that the browser translates', async () => {
  await setLanguage('en');
  const stock = sale().items[0]!.stock;
  const show = (later: boolean): Promise<void> =>
    act(() =>
      render(
        <>
          <StatusChip status={later ? 'CANCELLED' : 'PENDING_PAYMENT'} />
          <PhaseChip phase={later ? 'SOLD_OUT' : 'LIVE'} />
          <StockBar stock={{ ...stock, remaining: later ? 7 : 8 }} />
          <LiveRegion />
          <Opening startsAt={Date.now() + (later ? 30_000 : 90_000)} upcoming />
        </>,
        document.body,
      ),
    );
  await show(false);
  await act(() => readOut('The sale opens in one minute.'));
  translate();
  expect(document.body.textContent).toContain('übersetzt');
  await act(() => readOut('The sale opens in ten seconds.'));
  await show(true);
  const text = document.body.textContent!;
  for (const words of ['Cancelled', 'Sold out', '7 of 10', 'ten seconds']) expect(text).toContain(words);
  expect(text).not.toContain('übersetzt');
  expect(text).toMatch(/00:\d\d/);
});
