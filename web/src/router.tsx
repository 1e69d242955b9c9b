import { type AnchorHTMLAttributes, type MouseEvent, type ReactNode, useCallback, useSyncExternalStore } from 'react'

/** Where the page lives: `/`, or the prefix of a proxy. The entry script lies in `<prefix>/assets/`. */
export const basePath = import.meta.env.DEV ? '/' : new URL(/* @vite-ignore */ '..', import.meta.url).pathname

export const clusterTabs = [
  'overview',
  'nodes',
  'namespaces',
  'deployments',
  'operators',
  'cluster-operators',
  'events',
  'types',
  'history',
] as const
export type ClusterTab = (typeof clusterTabs)[number]

/** Tabs of kinds that every cluster has: they are called as the kind. */
export const kindTabs: readonly string[] = ['nodes', 'namespaces', 'deployments', 'operators', 'cluster-operators']

/** Rows of a type on a cluster; of `core/nodes`, where a MetricSource has the plain name, in the tab of nodes. */
export function typePath(cluster: string, type: string): string {
  const tab = kindTabs.find((one) => type === one || type === `core/${one}`) as ClusterTab | undefined
  return tab ? clusterPath(cluster, tab) : clusterPath(cluster, 'types', type)
}

export const accessTabs = ['policies', 'seen', 'try', 'me', 'why'] as const
export type AccessTab = (typeof accessTabs)[number]

export type Route =
  | { readonly page: 'fleet' }
  | { readonly page: 'access'; readonly tab: AccessTab; readonly policy: string | null }
  | {
      readonly page: 'cluster'
      readonly name: string
      readonly tab: ClusterTab
      readonly node: string | null
      readonly type: string | null
      /** of a page of its own: a namespace, or the row of a workload */
      readonly object: string | null
    }
  | { readonly page: 'events' }
  | { readonly page: 'types'; readonly type: string | null }
  | { readonly page: 'type-editor'; readonly isNew: boolean }
  | { readonly page: 'guide'; readonly name: string | null }
  | { readonly page: 'registries'; readonly name: string | null }
  | { readonly page: 'members'; readonly name: string | null }
  | { readonly page: 'missing'; readonly path: string }

export function parseRoute(path: string): Route {
  const parts = path.split('/').filter((part) => part !== '')
  let words: string[]
  try {
    words = parts.map(decodeURIComponent)
  } catch {
    return { page: 'missing', path } // a "%" that encodes nothing
  }
  const [first, name, tab = 'overview', item, ...more] = words
  if (first === undefined) return { page: 'fleet' }
  if (first === 'access') return accessRoute(words.slice(1)) ?? { page: 'missing', path }
  if (first === 'types') return typesRoute(words.slice(1)) ?? { page: 'missing', path }
  if (first === 'guide') return { page: 'guide', name: words.slice(1).join('/') || null }
  if (first === 'events' && words.length === 1) return { page: 'events' }
  if ((first === 'registries' || first === 'members') && words.length <= 2) return { page: first, name: name ?? null }
  const isTab = (clusterTabs as readonly string[]).includes(tab)
  const hasItem = tab === 'nodes' || tab === 'types' || tab === 'namespaces'
  const [object = null, ...rest] = tab === 'types' && item === 'workloads' ? more : [null, ...more]
  if (first !== 'clusters' || !name || !isTab || rest.length > 0 || (item !== undefined && !hasItem)) {
    return { page: 'missing', path }
  }
  return {
    page: 'cluster',
    name,
    tab: tab as ClusterTab, // isTab
    node: tab === 'nodes' ? (item ?? null) : null,
    type: tab === 'types' ? (item ?? null) : null,
    object: tab === 'namespaces' ? (item ?? null) : object,
  }
}

/** @param item a node, or a type */
export function clusterPath(name: string, tab: ClusterTab = 'overview', item?: string): string {
  const path = `/clusters/${encodeURIComponent(name)}${tab === 'overview' ? '' : `/${tab}`}`
  return item === undefined ? path : `${path}/${encodeURIComponent(item)}`
}

/** The page of a namespace: what stands in it, and what happened there. */
export const namespacePath = (cluster: string, name: string): string => clusterPath(cluster, 'namespaces', name)

/** The page of a workload. @param id `namespace/name:Kind` */
export const workloadPath = (cluster: string, id: string): string =>
  `${clusterPath(cluster, 'types', 'workloads')}/${encodeURIComponent(id)}`

export const eventsPath = '/events'

/** `new` and `edit` are pages: a type of such a name is reached on its clusters. */
function typesRoute([type, ...more]: readonly string[]): Route | undefined {
  if (more.length > 0) return undefined
  if (type === 'new' || type === 'edit') return { page: 'type-editor', isNew: type === 'new' }
  return { page: 'types', type: type ?? null }
}

export const typesPath = (type?: string): string =>
  type === undefined ? '/types' : `/types/${encodeURIComponent(type)}`

/** The same set of clusters on another page. @param query of this one */
export function withSet(path: string, query: string): string {
  const set = new URLSearchParams(query).get('set')
  return set ? `${path}${path.includes('?') ? '&' : '?'}set=${encodeURIComponent(set)}` : path
}

/** @param source `<namespace>/<name>` of a MetricSource; undefined: a new one */
export const typeEditorPath = (source?: string): string =>
  source === undefined ? '/types/new' : `/types/edit?source=${encodeURIComponent(source)}`

export const registriesPath = (name?: string): string =>
  name === undefined ? '/registries' : `/registries/${encodeURIComponent(name)}`

export const membersPath = (name?: string): string =>
  name === undefined ? '/members' : `/members/${encodeURIComponent(name)}`

/** @param name `first-hour`, `reference/commands` */
export const guidePath = (name?: string): string => (name === undefined ? '/guide' : `/guide/${name}`)

function accessRoute([tab = 'policies', namespace, policy, ...more]: readonly string[]): Route | undefined {
  if (more.length > 0 || !(accessTabs as readonly string[]).includes(tab)) return undefined
  if (namespace === undefined) return { page: 'access', tab: tab as AccessTab, policy: null } // looked up above
  if (tab !== 'policies' || policy === undefined) return undefined
  return { page: 'access', tab, policy: `${namespace}/${policy}` }
}

export const accessPath = (tab: AccessTab): string => (tab === 'policies' ? '/access' : `/access/${tab}`)

/** @param key `<namespace>/<name>` */
export const policyPath = (key: string): string =>
  `/access/policies/${key.split('/').map(encodeURIComponent).join('/')}`

/** The page that tells why something is shown, or not. */
export function whyPath(question: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams(Object.entries(question).filter(([, value]) => value !== '')).toString()
  return `/access/why${query && `?${query}`}`
}

export interface Place {
  /** without the prefix */
  readonly path: string
  readonly query: string
  /** of this entry of the browser's history */
  readonly key: string
}

const listeners = new Set<() => void>()
let place = read()
let lateUrl: ReturnType<typeof setTimeout> | undefined

function read(): Place {
  const { pathname, search } = window.location
  const path = pathname.startsWith(basePath) ? `/${pathname.slice(basePath.length)}` : pathname
  const state: unknown = window.history.state
  const key = typeof state === 'object' && state !== null && 'key' in state ? String(state.key) : 'first'
  return { path, query: search.replace(/^\?/, ''), key }
}

const tell = () => {
  for (const listener of listeners) listener()
}
window.addEventListener('popstate', () => {
  clearTimeout(lateUrl)
  place = read()
  tell()
})

/** The address of a place in here, for `href`. */
export const hrefOf = (to: string): string => `${basePath}${to.replace(/^\//, '')}`

export function navigate(to: string, { replace = false }: { replace?: boolean } = {}): void {
  flushUrl()
  const key = replace ? place.key : Math.random().toString(36).slice(2)
  const { path } = place
  window.history[replace ? 'replaceState' : 'pushState']({ key }, '', hrefOf(to))
  place = read()
  if (!replace && place.path !== path) window.scrollTo(0, 0)
  tell()
}

const flushUrl = () => {
  clearTimeout(lateUrl)
  lateUrl = undefined
  window.history.replaceState(
    { key: place.key },
    '',
    hrefOf(place.query === '' ? place.path : `${place.path}?${place.query}`),
  )
}

/** Changes the query of this place at once; the address bar follows when typing pauses (browsers limit its changes). */
export function setQuery(changes: Readonly<Record<string, string | null>>): void {
  const query = new URLSearchParams(place.query)
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') query.delete(name)
    else query.set(name, value)
  }
  place = { ...place, query: query.toString() }
  clearTimeout(lateUrl)
  lateUrl = setTimeout(flushUrl, 200)
  tell()
}

/** The same, as a step of its own: the browser's Back undoes it. The page stays where it is scrolled to. */
export function pushQuery(changes: Readonly<Record<string, string | null>>): void {
  flushUrl()
  place = { ...place, key: Math.random().toString(36).slice(2) }
  window.history.pushState({ key: place.key }, '', window.location.href)
  setQuery(changes)
  flushUrl()
}

const subscribe = (listener: () => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
/** As it is now, also where the address bar has yet to follow. */
export const currentPlace = (): Place => place

export const currentQuery = (): string => place.query

export const usePlace = (): Place => useSyncExternalStore(subscribe, () => place)

export function useQueryValue(name: string): [value: string, set: (value: string | null) => void] {
  const { query } = usePlace()
  const set = useCallback((value: string | null) => setQuery({ [name]: value }), [name])
  return [new URLSearchParams(query).get(name) ?? '', set]
}

type LinkProps = Omit<AnchorHTMLAttributes<HTMLAnchorElement>, 'href'> & { to: string; children: ReactNode }

/** A link that stays in the page, and is a plain link for everything else a browser can do with one. */
export function Link({ to, onClick, children, ...rest }: LinkProps): ReactNode {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event)
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey
    if (event.defaultPrevented || !plain) return
    event.preventDefault()
    navigate(to)
  }
  return (
    <a href={hrefOf(to)} onClick={follow} {...rest}>
      {children}
    </a>
  )
}
