import { render } from 'preact';
import { expect, test, vi } from 'vitest';
import { Deferred } from '../src/ui/later';

test('what is below the first screen is rendered after it', async () => {
  render(
    <Deferred>
      <p>below</p>
    </Deferred>,
    document.body,
  );
  expect(document.body.textContent).toBe('');
  await vi.waitFor(() => expect(document.body.textContent).toBe('below'));
});
