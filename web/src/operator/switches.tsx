/** The access controls, which can be changed while the sale runs. */
import { request } from '../api/client';
import type { CaptchaKind } from '@seckill/client/types';
import { SetSaleSwitches } from '../documents/interventions';
import { bounded } from '../forms/bounded';
import type { AdminSale } from './acts';
import { acted, type Asked } from './asked';
import { Field, Form } from './form';
import { ot } from './texts';

const kinds = ['TEXT', 'MATH', 'PROOF_OF_WORK', 'EXTERNAL'] as const satisfies CaptchaKind[];

/** Statuses without access controls. */
const OVER = ['ENDED', 'CANCELLED'];

/** The switches of a sale. */
export function Switches({ sale, reload }: { sale: AdminSale; reload: () => void }) {
  const now = sale.switches;
  if (!now || OVER.includes(sale.status)) return null;
  let asked: Asked | null | undefined;
  const number = (name: keyof typeof now, label: string, step: string) => (
    <Field label={label}>
      <input name={name} class="field font-normal" type="number" min="0" step={step} required defaultValue={String(now[name])} />
    </Field>
  );
  return (
    <details class="card p-5">
      <summary class="head">{ot('op.switches')}</summary>
      <Form
        key={JSON.stringify(now)}
        class="mt-4 grid gap-4"
        label={ot('op.change')}
        send={async (of) => {
          const { setSaleSwitches } = await request(SetSaleSwitches, {
            input: {
              saleId: sale.id,
              captchaRequired: 'required' in of,
              captchaKinds: kinds.filter((kind) => kind in of),
              proofOfWorkMax: Number(of['proofOfWorkMax']),
              permitRatio: Number(of['permitRatio']),
              inflowPerSecond: Number(of['inflowPerSecond']),
              reviewAccounts: Number(of['reviewAccounts']),
              limitBurst: Number(of['limitBurst']),
              limitPerSecond: Number(of['limitPerSecond']),
              note: of['note'] || null,
            },
          });
          asked = setSaleSwitches?.intervention;
          return setSaleSwitches?.userErrors[0];
        }}
        done={() => {
          acted(asked);
          reload();
        }}
      >
        <label class="flex items-center gap-2">
          <input type="checkbox" name="required" class="size-4 accent-ink" defaultChecked={now.captchaRequired} />
          {ot('op.captchaRequired')}
        </label>
        <fieldset>
          <legend class="mb-1.5 font-medium">{ot('op.captchaKinds')}</legend>
          <div class="flex flex-wrap gap-x-5 gap-y-2">
            {kinds.map((kind) => (
              <label key={kind} class="flex items-center gap-2">
                <input type="checkbox" name={kind} class="size-4 accent-ink" defaultChecked={now.captchaKinds.includes(kind)} />
                {ot(`op.kind.${kind}`)}
              </label>
            ))}
          </div>
        </fieldset>
        <div class="grid items-end gap-4 sm:grid-cols-2">
          {number('permitRatio', ot('op.permitRatio'), '0.1')}
          {number('inflowPerSecond', ot('op.inflow'), '1')}
          {number('limitBurst', ot('op.limitBurst'), '1')}
          {number('limitPerSecond', ot('op.limitPerSecond'), '0.1')}
          {number('proofOfWorkMax', ot('op.proofOfWorkMax'), '1')}
          {number('reviewAccounts', ot('op.reviewAccounts'), '1')}
        </div>
        <Field label={ot('op.note')}>
          <input name="note" class="field font-normal" ref={bounded({ most: 200 })} />
        </Field>
      </Form>
    </details>
  );
}
