/** Downloads a blob under a name. */
export function save(content: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** A cell of a CSV file. Spreadsheets run a text that begins as a formula does, so it gets an apostrophe. */
function cell(value: string | number): string {
  const text = String(value).replace(/^(?=[=+\-@\t\r])/, "'");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Rows as a CSV file. It begins with a byte order mark, without which Excel does not read UTF-8. */
export const csv = (rows: readonly (readonly (string | number)[])[]): Blob =>
  new Blob(['\uFEFF', ...rows.map((row) => `${row.map(cell).join(',')}\r\n`)], { type: 'text/csv;charset=utf-8' });
