/** The dialogs that withdraw, duplicate, reschedule, extend and edit a sale or save it as a template; staff cannot buy in their own sale. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { act, confirm, draft, fromNow, saleStatus, type Fields } from './admin';
import { checkScreen } from './axe';
import { button, signIn, demoFixture } from './shop';

const it = demoFixture({ SECKILL_LIMITS: 'off' });

/** Opens the dialog of a step, looks at it, and takes the step. */
async function checkAndAct(page: Page, name: string, file: string, fields: Fields = {}): Promise<void> {
  await page.getByRole('main').getByRole('button', { name, exact: true }).click();
  await page.getByRole('dialog').waitFor();
  await checkScreen(page, file);
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
  await saleStatus(operator, 'In review').waitFor();
  await checkAndAct(operator, 'Withdraw submission', 'admin-withdraw', { 'Note (optional)': 'A wrong price.' });
  await saleStatus(operator, 'Draft').waitFor();
  await operator.getByText('A wrong price.').first().waitFor();
  await checkAndAct(operator, 'Save as template', 'admin-template', { Name: 'Every winter' });
  await checkAndAct(operator, 'Duplicate', 'admin-duplicate', { Opens: fromNow(3_600), Ends: fromNow(7_200) });
  await expect.poll(() => operator.url()).not.toBe(first);
  await saleStatus(operator, 'Draft').waitFor();
  await checkAndAct(operator, 'Discard draft', 'admin-discard');
  await saleStatus(operator, 'Cancelled').waitFor();
  await operator.goto(`${it.demo.url}/operate/sales`);
  await operator.locator('[data-templates] summary').click();
  await operator.getByText('Every winter').waitFor();
  await checkScreen(operator, 'admin-templates');
  await operator.getByRole('button', { name: 'Create a sale' }).click();
  await operator.getByRole('dialog').waitFor();
  await checkScreen(operator, 'admin-template-use');
  await operator.getByRole('dialog').getByRole('button', { name: 'Create a sale' }).click();
  await operator.waitForURL('**/operate/sales/*');
  await operator.getByRole('heading', { name: 'Winter drop' }).waitFor();
  await saleStatus(operator, 'Draft').waitFor();
});

test('a sale is moved before its opening, extended by two people and reworded while it runs; who prepared it cannot buy', async () => {
  const operator = await it.page();
  await signIn(operator, it.demo, 'operator', '/operate/new');
  await draft(operator, 'Spring drop');
  const place = new URL(operator.url()).pathname;
  await act(operator, 'Submit for review');
  await saleStatus(operator, 'In review').waitFor();
  const admin = await it.page();
  await signIn(admin, it.demo, 'admin', place);
  await act(admin, 'Approve');
  await saleStatus(admin, 'Approved').waitFor();
  await act(admin, 'Schedule', { Opens: fromNow(3_600), Ends: fromNow(7_200) });
  await confirm(operator, it.demo.url + place);
  await saleStatus(admin, 'Scheduled').waitFor();
  await act(admin, 'Preload');
  await saleStatus(admin, 'Preloaded').waitFor();
  await act(admin, 'Pause', { Reason: 'The lorry is late.' });
  await saleStatus(admin, 'Paused').waitFor();
  await checkAndAct(admin, 'Reschedule', 'admin-reschedule', { 'Note (optional)': 'The lorry came.', Ends: () => fromNow(3_600), Opens: () => fromNow(90) });
  await admin.getByText('The lorry came.').first().waitFor();
  await confirm(operator, it.demo.url + place);
  await act(admin, 'Resume');
  await saleStatus(admin, 'Live').waitFor({ timeout: 300_000 }); // by push

  await operator.goto(`${it.demo.url}${place}`);
  await operator.getByRole('link', { name: 'View in shop' }).click();
  await button(operator, 'none').waitFor();
  await operator.getByText('You prepared, approved or changed this sale').first().waitFor();
  await checkScreen(operator, 'sale-own');

  await checkAndAct(admin, 'Extend', 'admin-extend', { Ends: () => fromNow(3_900), Reason: 'Many are still buying.' });
  await admin.getByText('Many are still buying.').first().waitFor();
  await act(admin, 'Extend', { Ends: fromNow(20_000), Reason: 'All night.' });
  await admin.getByText('Needs a second person').waitFor();
  await operator.goto(`${it.demo.url}/operate/inbox`);
  await operator.getByText('All night.').waitFor();
  await confirm(operator, it.demo.url + place);
  await checkAndAct(operator, 'Change texts', 'admin-describe', { Title: 'Spring drop, all night' });
  await operator.getByRole('heading', { name: 'Spring drop', exact: true }).waitFor(); // buyers see what was approved
  await confirm(admin, it.demo.url + place);
  await operator.getByRole('heading', { name: 'Spring drop, all night' }).waitFor();
  const approved = operator.locator('section', { has: operator.getByRole('heading', { name: 'What was approved' }) });
  await approved.getByRole('row', { name: /Title Spring drop Spring drop, all night \(changed\)/ }).first().waitFor();
  await checkScreen(operator, 'admin-log-of-changes');
});
