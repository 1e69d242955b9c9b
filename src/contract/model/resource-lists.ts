import { documentText, documentTime } from './documents.ts'
import type { Table } from './table.ts'

/*
 * The documented lists of pods, deployments, services, stateful sets and daemon sets, and the document about them. They are cut at
 * the documented bounds; rows of the kinds themselves are not.
 */

/** Bounds of the documented lists of one cluster. */
export interface ResourceListSettings {
  readonly podsPerNamespace: number
  readonly pods: number
  /** of stateful sets as well */
  readonly deployments: number
  readonly services: number
  /** whether labels of objects are told */
  readonly labels: boolean
}

/** Of daemon sets, which have no setting. */
const MAX_DAEMON_SETS = 100

/** One list as it is written. */
export interface ResourceList {
  readonly name: ListName
  readonly text: string
  readonly count: number
  /** something was left out for a bound */
  readonly truncated: boolean
}

/** The lists of resources that Redis keeps per cluster for readers of the original, by the last part of their keys. */
export type ListName = 'pods' | 'deployments' | 'services' | 'statefulsets' | 'daemonsets'

interface ListPlan {
  readonly name: ListName
  readonly most: (settings: ResourceListSettings) => number
  /** undefined: the row is not in the list */
  readonly document: (place: number, value: ValueAt) => Readonly<Record<string, unknown>> | undefined
}

type ValueAt = (column: string, place: number) => unknown

/** Which lists are made of which kind of row. */
const PLANS: Readonly<Record<string, readonly ListPlan[]>> = {
  pods: [
    {
      name: 'pods',
      most: ({ pods }) => pods,
      // What has ended is in none of the documented lists.
      document: (place, value) => {
        const status = value('phase', place)
        const node = value('node', place)
        if (status === 'Succeeded' || status === 'Failed') return undefined
        return { status: status ?? '', ...(typeof node === 'string' && node && { node }) }
      },
    },
  ],
  workloads: [
    workloads('deployments', 'Deployment', ({ deployments }) => deployments, { replicas: 'desired', ready: 'ready' }),
    workloads('statefulsets', 'StatefulSet', ({ deployments }) => deployments, { replicas: 'desired', ready: 'ready' }),
    workloads('daemonsets', 'DaemonSet', () => MAX_DAEMON_SETS, {
      desired: 'desired',
      current: 'current',
      ready: 'ready',
    }),
  ],
  services: [
    {
      name: 'services',
      most: ({ services }) => services,
      document: (place, value) => {
        const address = value('clusterIp', place)
        return { type: value('type', place) ?? '', ...(typeof address === 'string' && { cluster_ip: address }) }
      },
    },
  ],
}

/** Kinds of rows that documented lists are made of. */
export const LISTED_KINDS: readonly string[] = Object.keys(PLANS)

/** Names of the lists that are made of this kind of row. */
export const listsOf = (kind: string): readonly ListName[] => (PLANS[kind] ?? []).map(({ name }) => name)

/** @param columns name of a number in the document → column it is in; a number that nobody sent is left out */
function workloads(
  name: ListName,
  kind: string,
  most: ListPlan['most'],
  columns: Readonly<Record<string, string>>,
): ListPlan {
  const entries = Object.entries(columns)
  return {
    name,
    most,
    document: (place, value) => {
      if (value('kind', place) !== kind) return undefined
      return Object.fromEntries(
        entries.flatMap(([field, column]) => {
          const number = value(column, place)
          return typeof number === 'number' ? [[field, number]] : []
        }),
      )
    },
  }
}

/** The documented lists that are made of these rows; [] for a kind of which there is none. */
export function resourceLists(kind: string, rows: Table, settings: ResourceListSettings): ResourceList[] {
  return (PLANS[kind] ?? []).map((plan) => listOf(plan, rows, settings))
}

function listOf({ name, most, document }: ListPlan, rows: Table, settings: ResourceListSettings): ResourceList {
  const value = columnReader(rows)
  const limit = most(settings)
  const perNamespace = name === 'pods' ? settings.podsPerNamespace : Number.POSITIVE_INFINITY
  const texts: string[] = []
  let truncated = false
  let [namespace, inNamespace] = ['', 0]
  for (let place = 0; place < rows.size; place++) {
    const told = document(place, value)
    if (!told) continue
    if (texts.length >= limit) return { name, text: textOf(texts), count: texts.length, truncated: true }
    if (rows.namespaceAt(place) !== namespace) [namespace, inNamespace] = [rows.namespaceAt(place), 0]
    if (inNamespace >= perNamespace) {
      truncated = true
      continue
    }
    inNamespace++
    // Keys of rows of several kinds have the kind behind a colon.
    const key = rows.nameAt(place).split(':', 1)[0]
    const labels = settings.labels ? sorted(rows.labelsAt(place)) : undefined
    texts.push(documentText({ name: key, namespace, ...told, ...(labels && { labels }) }))
  }
  return { name, text: textOf(texts), count: texts.length, truncated }
}

const textOf = (texts: readonly string[]) => `[${texts.join(',')}]`

function columnReader(rows: Table): ValueAt {
  const columns = new Map(rows.fields.map((field) => [field, rows.column(field)]))
  return (column, place) => columns.get(column)?.(place) ?? null
}

/** undefined where there is none: an empty map is not told. */
function sorted(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> | undefined {
  const entries = Object.entries(labels)
  return entries.length === 0 ? undefined : Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** What is known of the lists of one kind of row. */
export interface ListedKind {
  readonly observedAt: number
  readonly durationMs: number
  readonly truncated: boolean
  readonly counts: Readonly<Partial<Record<ListName, number>>>
}

/** The document about the lists of one cluster. Counts of what could not be read are left out. */
export function resourceMetadataDocument(kinds: readonly ListedKind[]): Readonly<Record<string, unknown>> {
  const counts: Partial<Record<ListName, number>> = Object.assign({}, ...kinds.map((kind) => kind.counts))
  const names: readonly ListName[] = ['pods', 'deployments', 'services', 'statefulsets', 'daemonsets']
  return {
    timestamp: documentTime(Math.max(...kinds.map(({ observedAt }) => observedAt))),
    // The lists are read side by side.
    collection_time_ms: Math.max(...kinds.map(({ durationMs }) => durationMs)),
    truncated: kinds.some(({ truncated }) => truncated),
    total_resources: names.reduce((sum, name) => sum + (counts[name] ?? 0), 0),
    ...Object.fromEntries(
      names.flatMap((name) => (counts[name] === undefined ? [] : [[`${name}_count`, counts[name]]])),
    ),
  }
}
