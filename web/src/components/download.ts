// Spreadsheets take a CSV without it for the encoding of their country, and spoil every name beyond ASCII.
const byteOrderMark = '\uFEFF'

/** Hands a text to the browser as a file. */
export function download(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([type === 'text/csv' ? byteOrderMark + text : text], { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
