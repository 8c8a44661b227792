/** The choice of a provider to pay an order at. */
import type { PaymentOption } from '@seckill/client/types';
import { t } from '../i18n/text';
import { Icon, iconOf } from '../ui/icons';

/** The options that work on this device; all of them if none does. */
export function usableOptions(options: PaymentOption[]): PaymentOption[] {
  const other = matchMedia('(pointer: coarse)').matches ? 'DESKTOP' : 'PHONE';
  const fit = options.filter(({ device }) => device !== other);
  return fit.length ? fit : options;
}

/** One provider per line, unavailable ones with the reason; nothing if there is only one. */
export function PayOptions({ options, chosen, choose }: { options: PaymentOption[]; chosen: string; choose: (id: string) => void }) {
  if (options.length < 2) return null;
  return (
    <fieldset class="grid gap-2">
      <legend class="mb-2 font-medium">{t('order.payHow')}</legend>
      {options.map(({ id, displayName, icon, unavailableReason }) => (
        <label key={id} class="note flex cursor-pointer items-center gap-3">
          <input type="radio" name="pay-option" value={id} checked={id === chosen} disabled={!!unavailableReason} aria-describedby={unavailableReason ? `away-${id}` : undefined} onChange={() => choose(id)} />
          <Icon name={iconOf(icon)} />
          <span class="font-medium"><bdi>{displayName}</bdi></span>
          {unavailableReason && (
            <span id={`away-${id}`} class="text-sm text-soft">
              {unavailableReason}
            </span>
          )}
        </label>
      ))}
    </fieldset>
  );
}
