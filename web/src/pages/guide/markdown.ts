/*
 * The Markdown of our own guides as HTML, made when the page is built: headings, paragraphs, lists, tables, code and links.
 * Everything else is text; nothing of a guide is taken as HTML.
 */

/** Where a link of a guide leads; undefined: it leads nowhere from here, and is shown as text with its address. */
export type LinkOf = (target: string) => string | undefined

export interface GuideText {
  readonly title: string
  readonly html: string
}

export function guideHtml(markdown: string, linkOf: LinkOf): GuideText {
  const lines = markdown.replaceAll('\r\n', '\n').split('\n')
  const html: string[] = []
  let title = ''
  for (let at = 0; at < lines.length; ) {
    const block = blockAt(lines, at, linkOf)
    if (title === '' && block.heading !== undefined) title = block.heading
    else html.push(block.html)
    at = block.next
  }
  return { title, html: html.filter((each) => each !== '').join('\n') }
}

interface Block {
  readonly html: string
  readonly next: number
  /** the text of a heading of the first order */
  readonly heading?: string
}

const item = /^\s*(?:([-*])|\d+\.)\s+/
const starts = /^(?:#{1,6} |```|\s*[-*] |\s*\d+\. |\|)/

function blockAt(lines: readonly string[], at: number, linkOf: LinkOf): Block {
  const line = lines[at] ?? ''
  const until = (from: number, goesOn: (line: string) => boolean): number => {
    let end = from
    while (end < lines.length && goesOn(lines[end] ?? '')) end++
    return end
  }
  if (line.trim() === '' || line.startsWith('<!--')) return { html: '', next: at + 1 }
  const heading = /^(#{1,6}) (.*)$/.exec(line)
  if (heading?.[2] !== undefined) {
    const [level, text] = [heading[1]?.length ?? 1, heading[2]]
    const html = `<h${Math.max(2, level)} id="${anchorOf(text)}">${inline(text, linkOf)}</h${Math.max(2, level)}>`
    return { html, next: at + 1, ...(level === 1 && { heading: text.replaceAll('`', '') }) }
  }
  if (line.startsWith('```')) {
    const end = until(at + 1, (each) => !each.startsWith('```'))
    return { html: code(lines.slice(at + 1, end)), next: end + 1 }
  }
  if (/^ {4}/.test(line)) {
    const end = until(at, (each) => /^ {4}/.test(each) || each.trim() === '')
    return { html: code(lines.slice(at, end).map((each) => each.slice(4))), next: end }
  }
  if (line.startsWith('|')) {
    const end = until(at, (each) => each.startsWith('|'))
    return { html: table(lines.slice(at, end), linkOf), next: end }
  }
  if (item.test(line)) return list(lines, at, linkOf)
  const end = until(at + 1, (each) => each.trim() !== '' && !starts.test(each))
  return { html: `<p>${inline(lines.slice(at, end).join('\n'), linkOf)}</p>`, next: end }
}

/** Items go on in lines that are indented. */
function list(lines: readonly string[], at: number, linkOf: LinkOf): Block {
  const items: string[] = []
  const tag = item.exec(lines[at] ?? '')?.[1] ? 'ul' : 'ol'
  let next = at
  for (; next < lines.length; next++) {
    const line = lines[next] ?? ''
    if (item.test(line)) items.push(line.replace(item, ''))
    else if (/^\s+\S/.test(line)) items.push(`${items.pop() ?? ''}\n${line.trim()}`)
    else break
  }
  return { html: `<${tag}>${items.map((each) => `<li>${inline(each, linkOf)}</li>`).join('')}</${tag}>`, next }
}

function table([head = '', , ...rows]: readonly string[], linkOf: LinkOf): string {
  const cells = (row: string, tag: string) =>
    row
      .replace(/^\|/, '')
      .replace(/\|\s*$/, '')
      .split(/(?<!\\)\|/)
      .map((cell) => `<${tag}>${inline(cell.trim().replaceAll('\\|', '|'), linkOf)}</${tag.split(' ')[0]}>`)
      .join('')
  const body = rows.map((row) => `<tr>${cells(row, 'td')}</tr>`).join('')
  return `<div class="guide-table" tabindex="0" role="group" aria-label="Table, scrolls"><table><thead><tr>${cells(head, 'th scope="col"')}</tr></thead><tbody>${body}</tbody></table></div>`
}

const code = (lines: readonly string[]): string => `<pre><code>${escaped(lines.join('\n').trimEnd())}</code></pre>`

const span = /`([^`]+)`|\[([^\]]+)\]\(([^)\s]+)\)|<(https?:\/\/[^>\s]+)>|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*/g

function inline(text: string, linkOf: LinkOf): string {
  let [html, at] = ['', 0]
  for (const match of text.matchAll(span)) {
    const [whole, plain, words, target, address, strong, weak] = match
    html += escaped(text.slice(at, match.index))
    at = match.index + whole.length
    if (plain !== undefined) html += `<code>${escaped(plain)}</code>`
    else if (words !== undefined && target !== undefined) html += link(inline(words, linkOf), target, linkOf)
    else if (address !== undefined) html += link(escaped(address), address, linkOf)
    else if (strong !== undefined) html += `<b>${inline(strong, linkOf)}</b>`
    else html += `<i>${inline(weak ?? '', linkOf)}</i>`
  }
  return html + escaped(text.slice(at))
}

function link(words: string, target: string, linkOf: LinkOf): string {
  const to = linkOf(target)
  if (to === undefined) {
    const path = `<code>${escaped(target.replace(/^(?:\.\.\/)+/, ''))}</code>`
    return words === path ? path : `${words} (${path})`
  }
  return `<a href="${escaped(to)}">${words}</a>`
}

export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const escaped = (text: string): string => text.replaceAll(/[&<>"]/g, (sign) => entities[sign] ?? sign)
