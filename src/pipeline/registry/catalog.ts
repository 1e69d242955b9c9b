import { ProbeError, troubleWith } from './errors.ts'
import { linesOf, nextLink } from './header.ts'
import { parsed } from './sign-in.ts'
import type { Answer } from './wire.ts'

/** How far the repositories of a registry were counted. */
export interface Catalog {
  /** null: not even the first page could be read */
  readonly count: number | null
  readonly isTruncated: boolean
  /** there are further pages, or would be */
  readonly isPaged: boolean
  /** where there are at most `MAX_NAMES` */
  readonly names: readonly string[] | null
  /** why it could not be read, or not to its end; undefined: it was */
  readonly trouble: ProbeError | undefined
}

const MAX_NAMES = 20
const MAX_PAGES = 1_000
/** So many pages in a row that name nothing new are no catalogue. */
const MAX_IDLE_PAGES = 100
const MAX_REPOSITORIES = 100_000
/** Of all pages together: names of a hostile registry can be as long as a page. */
const MAX_TOTAL_BYTES = 32 * 2 ** 20
export const PAGE_BYTES = 8 * 2 ** 20

export interface CatalogOptions {
  /** of the first page */
  readonly url: URL
  readonly ask: (url: URL) => Promise<Answer>
  /** the caller's own end: thrown on */
  readonly signal: Pick<AbortSignal, 'throwIfAborted'>
}

/** Counts repositories page by page, within bounds of pages, names, bytes and the time that `ask` has. Aborts are thrown. */
export async function readCatalog({ url: first, ask, signal }: CatalogOptions): Promise<Catalog> {
  const found = new Set<string>()
  const visited = new Set<string>()
  let bytes = 0
  let idle = 0
  let url: URL | undefined = first
  let trouble: ProbeError | undefined
  while (url && !trouble) {
    visited.add(url.href)
    let answer: Answer
    try {
      answer = await ask(url)
      const before = found.size
      for (const name of namesOf(answer)) found.add(name)
      idle = found.size > before ? 0 : idle + 1
    } catch (error) {
      signal.throwIfAborted()
      trouble = troubleWith(url.host, error)
      if (visited.size === 1) return { count: null, isTruncated: false, isPaged: false, names: null, trouble }
      break
    }
    bytes += answer.body.length
    const next = nextPage(answer, first)
    url = next instanceof URL ? next : undefined
    if (next instanceof ProbeError) trouble = next
    else if (!url) break
    else if (visited.has(url.href))
      trouble = new ProbeError('catalog_loop', 'the pages of the catalogue go round in a circle')
    else if (idle >= MAX_IDLE_PAGES)
      trouble = new ProbeError('catalog_loop', `${idle} pages of the catalogue in a row name nothing new`)
    else if (visited.size >= MAX_PAGES || found.size >= MAX_REPOSITORIES || bytes >= MAX_TOTAL_BYTES)
      trouble = new ProbeError('catalog_too_large', 'the catalogue has more than is counted')
  }
  const count = Math.min(found.size, MAX_REPOSITORIES)
  return {
    count,
    isTruncated: trouble !== undefined,
    isPaged: visited.size > 1 || url !== undefined || trouble?.code === 'redirect_refused',
    names: !trouble && count <= MAX_NAMES ? [...found].sort() : null,
    trouble,
  }
}

function namesOf({ status, body, isCut }: Answer): readonly string[] {
  if (status === 401 || status === 403)
    throw new ProbeError('catalog_forbidden', 'the registry does not let us list its repositories')
  if (status === 404 || status === 405 || status === 501)
    throw new ProbeError('catalog_missing', 'the registry does not list its repositories')
  if (status !== 200) throw new ProbeError('catalog_failed', `the catalogue answers with status ${status}`)
  if (isCut) throw new ProbeError('answer_too_large', 'a page of the catalogue is larger than 8 MiB')
  const { repositories } = (parsed(body) ?? {}) as { readonly repositories?: unknown }
  // An empty list is null where the registry is written in Go.
  if (repositories === null) return []
  if (!Array.isArray(repositories)) throw new ProbeError('catalog_failed', 'the catalogue is not as specified')
  return repositories.filter((name): name is string => typeof name === 'string')
}

/** The next page, of the same registry only: a link elsewhere would make us carry questions, if not credentials. */
function nextPage({ headers, url, isHome }: Answer, first: URL): URL | ProbeError | undefined {
  const link = nextLink(linesOf(headers, 'link'))
  if (link === undefined || link === '') return undefined
  const next = isHome && URL.canParse(link, url.href) ? new URL(link, url) : undefined
  if (next?.origin !== first.origin)
    return new ProbeError('redirect_refused', 'the next page of the catalogue is not at the registry itself')
  next.hash = ''
  return next
}
