import { render } from 'preact';
import { afterEach, expect, test, vi } from 'vitest';
import { setLanguage } from '../src/i18n/text';
import { Remind } from '../src/purchase/remind';
import { Toasts } from '../src/ui/toast';

afterEach(() => void vi.useRealTimers());

test('a reminder rings one minute before the opening, on whatever page the tab is', async () => {
  await setLanguage('en');
  vi.useFakeTimers();
  const sale = { id: 'sal_1', title: 'Morning bargains', startsAt: new Date(Date.now() + 10 * 60_000).toISOString() };
  const show = (page: 'sale' | 'list'): void => render(page === 'sale' ? <Remind sale={sale} /> : <Toasts />, document.body);
  const press = async (): Promise<void> => {
    document.querySelector('button')!.click();
    await vi.advanceTimersByTimeAsync(100);
  };
  show('sale');
  await press();
  await press();
  await press(); // on, off, on
  expect(document.body.textContent).toBe('Reminder set – keep a tab of this shop open');
  show('list');
  await vi.advanceTimersByTimeAsync(9 * 60_000 - 2_000);
  expect(document.body.textContent).toBe('');
  await vi.advanceTimersByTimeAsync(3_000);
  expect(document.body.textContent).toContain('Morning bargains opens in one minute');
});
