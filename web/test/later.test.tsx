import { render } from 'preact';
import { expect, test, vi } from 'vitest';
import { Later } from '../src/ui/later';

test('what is below the first screen is rendered after it', async () => {
  render(
    <Later>
      <p>below</p>
    </Later>,
    document.body,
  );
  expect(document.body.textContent).toBe('');
  await vi.waitFor(() => expect(document.body.textContent).toBe('below'));
});
