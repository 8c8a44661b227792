/** The dialogs that change a sale beside its life: withdrawn, copied, saved, moved, extended, reworded; and the refusal of the own sale. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { act, draft, fromNow, stands, type Fields } from './admin';
import { look } from './axe';
import { button, signIn, stage } from './shop';

const it = stage({ SECKILL_LIMITS: 'off' });

/** Opens the dialog of a step, looks at it, and takes the step. */
async function lookAndAct(page: Page, name: string, file: string, fields: Fields = {}): Promise<void> {
  await page.getByRole('main').getByRole('button', { name, exact: true }).click();
  await page.getByRole('dialog').waitFor();
  await look(page, file);
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await act(page, name, fields);
}

test('a sale is withdrawn, copied and saved as a template, from which another one is made', async () => {
  const operator = await it.page();
  await signIn(operator, it.demo, 'operator', '/operate/new');
  await draft(operator, 'Winter drop');
  const first = operator.url();
  await act(operator, 'Submit for review');
  await stands(operator, 'In review').waitFor();
  await lookAndAct(operator, 'Withdraw submission', 'admin-withdraw', { 'Note (optional)': 'A wrong price.' });
  await stands(operator, 'Draft').waitFor();
  await operator.getByText('A wrong price.').first().waitFor();
  await lookAndAct(operator, 'Save as template', 'admin-template', { Name: 'Every winter' });
  await lookAndAct(operator, 'Duplicate', 'admin-duplicate', { Opens: fromNow(3_600), Ends: fromNow(7_200) });
  await expect.poll(() => operator.url()).not.toBe(first);
  await stands(operator, 'Draft').waitFor();
  await lookAndAct(operator, 'Discard draft', 'admin-discard');
  await stands(operator, 'Cancelled').waitFor();
  await operator.goto(`${it.demo.url}/operate/sales`);
  await operator.locator('[data-templates] summary').click();
  await operator.getByText('Every winter').waitFor();
  await look(operator, 'admin-templates');
  await operator.getByRole('button', { name: 'Create a sale' }).click();
  await operator.getByRole('dialog').waitFor();
  await look(operator, 'admin-template-use');
  await operator.getByRole('dialog').getByRole('button', { name: 'Create a sale' }).click();
  await operator.waitForURL('**/operate/sales/*');
  await operator.getByRole('heading', { name: 'Winter drop' }).waitFor();
  await stands(operator, 'Draft').waitFor();
});

test('a sale is moved before its opening, extended by two people and reworded while it runs; who prepared it cannot buy', async () => {
  const operator = await it.page();
  await signIn(operator, it.demo, 'operator', '/operate/new');
  await draft(operator, 'Spring drop');
  const place = new URL(operator.url()).pathname;
  await act(operator, 'Submit for review');
  await stands(operator, 'In review').waitFor();
  const admin = await it.page();
  await signIn(admin, it.demo, 'admin', place);
  await act(admin, 'Approve');
  await stands(admin, 'Approved').waitFor();
  await act(admin, 'Schedule', { Opens: fromNow(3_600), Ends: fromNow(7_200) });
  await stands(admin, 'Scheduled').waitFor();
  await act(admin, 'Preload');
  await stands(admin, 'Preloaded').waitFor();
  await act(admin, 'Pause', { Reason: 'The lorry is late.' });
  await stands(admin, 'Paused').waitFor();
  await lookAndAct(admin, 'Reschedule', 'admin-reschedule', { 'Note (optional)': 'The lorry came.', Ends: () => fromNow(3_600), Opens: () => fromNow(90) });
  await admin.getByText('The lorry came.').first().waitFor();
  await act(admin, 'Resume');
  await stands(admin, 'Live').waitFor({ timeout: 300_000 }); // by push

  await operator.goto(`${it.demo.url}${place}`);
  await operator.getByRole('link', { name: 'View in shop' }).click();
  await button(operator, 'none').waitFor();
  await operator.getByText('You prepared or approved this sale').first().waitFor();
  await look(operator, 'sale-own');

  await lookAndAct(admin, 'Extend', 'admin-extend', { Ends: () => fromNow(3_900), Reason: 'Many are still buying.' });
  await admin.getByText('Many are still buying.').first().waitFor();
  await act(admin, 'Extend', { Ends: fromNow(20_000), Reason: 'All night.' });
  await admin.getByText('Needs a second person').waitFor();
  await operator.goto(`${it.demo.url}/operate/inbox`);
  await operator.getByText('All night.').waitFor();
  await operator.goto(`${it.demo.url}${place}`);
  await operator.getByRole('button', { name: 'Confirm' }).click();
  await operator.getByRole('dialog').getByRole('button', { name: 'Confirm' }).click();
  await operator.getByRole('dialog').waitFor({ state: 'detached' });
  await lookAndAct(operator, 'Change texts', 'admin-describe', { Title: 'Spring drop, all night' });
  await operator.getByRole('heading', { name: 'Spring drop, all night' }).waitFor();
  await look(operator, 'admin-log-of-changes');
});
