import type { ComponentChildren } from 'preact';

/** A field with its label above it. */
export function Field({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <label class="grid gap-1.5 font-medium">
      {label}
      {children}
    </label>
  );
}

/** The values of a form, trimmed, by the names of its fields. */
export function values(form: HTMLFormElement): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, value] of new FormData(form)) if (typeof value === 'string') found[name] = value.trim();
  return found;
}

/** An amount with two decimals, as the API wants it. */
export function decimal(text: string): string {
  const [whole = '0', fraction = ''] = text.split('.');
  return `${whole || '0'}.${fraction.padEnd(2, '0').slice(0, 2)}`;
}
