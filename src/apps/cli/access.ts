import {
  type Access,
  type Action,
  asPrincipal,
  type Explanation,
  type FilterSummary,
  MemoryPolicies,
  openAccess,
  type Question,
  type SelectedCluster,
  type Semantics,
} from '#access'
import type { ExplanationView } from '#http'
import { FleetError, systemClock } from '#model'
import { resourceNamed } from '#resources'
import { type Column, table } from './format.ts'
import { clientOf } from './get.ts'
import { type PolicyFiles, readPolicyFiles } from './policy-files.ts'
import { printable } from './terminal.ts'

export interface ExplainOptions {
  readonly as?: string
  readonly email?: string
  readonly groups: readonly string[]
  readonly cluster?: string
  readonly labels: readonly string[]
  readonly action: Action
  readonly type?: string
  readonly name?: string
  readonly namespace?: string
  readonly files: readonly string[]
  readonly at?: string
  readonly semantics: Semantics
  readonly output: 'text' | 'json'
  readonly server: string
  /** bearer token, for a hub that asks who calls */
  readonly token?: string
}

/** Text for standard output, notes for standard error, and whether the command succeeded. */
export interface Answer {
  readonly text: string
  readonly notes: readonly string[]
  readonly failed?: boolean
}

class UsageError extends FleetError {
  override readonly name = 'UsageError'
  readonly code = 'usage'
  readonly retryable = false
}

/** Why somebody sees something, or does not: asked of the hub, or worked out from files alone. */
export async function explain(options: ExplainOptions): Promise<Answer> {
  return options.files.length > 0 ? explainFiles(options) : explainHub(options)
}

async function explainHub({ cluster, action, output, server, token, ...options }: ExplainOptions): Promise<Answer> {
  const client = clientOf(server, token)
  if (cluster === undefined) {
    if (options.as === undefined) {
      const permissions = await client.permissions()
      return { text: JSON.stringify(permissions, null, 2), notes: [] }
    }
    const { items } = await client.accessOf({
      username: options.as,
      groups: [...options.groups],
      ...(options.email !== undefined && { email: options.email }),
    })
    if (output === 'json') return { text: JSON.stringify(items, null, 2), notes: [] }
    const columns: Column<(typeof items)[number]>[] = [
      { header: 'CLUSTER', value: (item) => item.cluster },
      { header: 'ACCESS', value: (item) => item.level },
      { header: 'PERMISSIONS', value: (item) => item.permissions.join(',') },
      {
        header: 'SHOWN',
        value: (item) =>
          Object.entries(item.counts)
            .map(([type, { shown, of }]) => `${type} ${shown}/${of}`)
            .join(' '),
      },
      { header: 'DECIDED BY', value: (item) => item.decidedBy?.policy ?? null },
    ]
    return { text: table(columns, items), notes: [] }
  }
  const view = await client.explain({
    cluster,
    action,
    ...given({ type: options.type, name: options.name, namespace: options.namespace, as: options.as }),
    ...(options.groups.length > 0 && { groups: [...options.groups] }),
  })
  return { text: output === 'json' ? JSON.stringify(view, null, 2) : sentences(view), notes: [] }
}

async function explainFiles(options: ExplainOptions): Promise<Answer> {
  if (options.as === undefined && options.groups.length === 0)
    throw new UsageError('say who is asked about: --as <user>, --groups <names>, or both')
  const now = options.at === undefined ? Date.now() : Date.parse(options.at)
  if (Number.isNaN(now)) throw new UsageError(`--at ${options.at} is no time: write 2026-01-31T08:00:00Z`)
  const files = readPolicyFiles(options.files, now)
  const access = await accessOver(files, { semantics: options.semantics, now })
  const principal = asPrincipal({ username: options.as ?? '', email: options.email, groups: options.groups })
  const clusters = chosen(files, options)
  const explanations = await Promise.all(
    clusters.map((cluster) =>
      access.explain(principal, {
        action: options.action,
        cluster,
        ...given({ type: options.type, name: options.name, namespace: options.namespace }),
        ...resourceOfType(options.type),
      }),
    ),
  )
  const views = explanations.map(viewOf)
  const text =
    options.output === 'json' ? JSON.stringify(views, null, 2) : views.map((view) => sentences(view)).join('\n\n')
  return { text, notes: notesOf(files) }
}

/** Files declare no MetricSource, so no name is taken. */
function resourceOfType(type: string | undefined): Pick<Question, 'resource'> {
  const kind = type === undefined ? undefined : resourceNamed(type)
  if (!kind || kind.access === 'declared') return {}
  return { resource: { name: kind.typeName, rule: kind.access, isTaken: false } }
}

function chosen(files: PolicyFiles, { cluster, labels }: ExplainOptions): readonly SelectedCluster[] {
  if (cluster === undefined) {
    if (files.clusters.length > 0) return files.clusters
    throw new UsageError(
      'say which cluster: --cluster <name>, with --labels key=value where policies select by labels; or give ClusterConnections among the files',
    )
  }
  const known = files.clusters.find(({ name }) => name === cluster)
  return [{ name: cluster, labels: { ...known?.labels, ...labelsOf(labels) } }]
}

function labelsOf(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf('=')
      if (at < 1) throw new UsageError(`--labels ${text} is no pair: write key=value`)
      return [text.slice(0, at), text.slice(at + 1)]
    }),
  )
}

/** Access as if these policies were all there are. Nobody is an administrator here. */
export async function accessOver(
  { policies }: Pick<PolicyFiles, 'policies'>,
  { semantics, now }: { semantics: Semantics; now: number },
): Promise<Access> {
  const source = new MemoryPolicies()
  await source.resync(policies.map((document) => ({ document, status: {} })))
  return openAccess({
    source,
    semantics,
    administrators: { users: [], groups: [] },
    clock: { ...systemClock, now: () => now },
  })
}

export const notesOf = ({ findings }: PolicyFiles): string[] =>
  findings.map(
    ({ policy, finding }) => `${finding.severity}: ${policy}: ${finding.path} ${finding.message} (${finding.code})`,
  )

function viewOf({ question, principal, item, decidedBy, ...rest }: Explanation): ExplanationView {
  return {
    ...rest,
    principal: {
      username: principal.username,
      email: principal.email,
      groups: [...principal.groups],
      administrator: false,
    },
    question: {
      action: question.action,
      cluster: question.cluster.name,
      type: question.type ?? null,
      name: question.name ?? null,
    },
    permissions: [...rest.permissions],
    decidedBy: decidedBy && { ...decidedBy },
    skipped: rest.skipped.map((skipped) => ({ ...skipped })),
    filters: rest.filters as ExplanationView['filters'], // the same shape, read only
    item: item ?? null,
  }
}

const results = { allow: 'sees all of it', partial: 'sees a part of it', deny: 'does not see it' } as const

/** An explanation in words, a fact a line. */
export function sentences(view: ExplanationView): string {
  const { principal, question, decidedBy } = view
  const what = [
    `cluster ${question.cluster}`,
    ...(question.type === null ? [] : [question.type]),
    ...(question.name === null ? [] : [question.name]),
  ].join(', ')
  const who = principal.username === '' ? 'Somebody' : principal.username
  const groups = principal.groups.length > 0 ? ` (groups ${principal.groups.join(', ')})` : ''
  const lines = [
    `${who}${groups} asks to ${question.action === 'view' ? 'view' : 'view metrics of'} ${what}: ${view.result}`,
    `  ${results[view.result]}: ${view.reason}`,
    ...(view.item ? [`  this item is ${view.item.shown ? 'shown' : 'hidden'}: ${view.item.why}`] : []),
    ...(decidedBy
      ? [
          `  decided by ${decidedBy.policy} (${decidedBy.effect}, priority ${decidedBy.priority}, hash ${decidedBy.hash}), ${
            decidedBy.rule === null ? 'its default' : `rule ${decidedBy.rule}, selected by ${decidedBy.selectedBy}`
          }`,
        ]
      : []),
    ...(view.permissions.length > 0 ? [`  permissions: ${view.permissions.join(', ')}`] : []),
    ...Object.entries(view.filters).map(([type, filter]) => `  ${type}: ${filterText(filter)}`),
    ...view.skipped.map(
      ({ policy, effect, priority, why, detail }) =>
        `  passed over ${policy} (${effect}, priority ${priority}): ${why.replaceAll('_', ' ')}${detail === '' ? '' : `: ${detail}`}`,
    ),
  ]
  return lines.map((line) => line.slice(0, line.length - line.trimStart().length) + printable(line)).join('\n')
}

function filterText(filter: FilterSummary | ExplanationView['filters'][string]): string {
  if (filter.visibility !== 'filtered') return filter.visibility
  const lists = [
    ['names', filter.names],
    ['namespaces', filter.namespaces],
    ...Object.entries(filter.fields ?? {}).map(([field, list]) => [`field ${field}`, list] as const),
  ] as const
  const parts = lists.flatMap(([what, list]) => {
    if (!list) return []
    const said = [
      ...(list.allowed.length > 0 ? [`only ${list.allowed.join(', ')}`] : []),
      ...(list.denied.length > 0 ? [`not ${list.denied.join(', ')}`] : []),
    ]
    return said.length > 0 ? [`${what} ${said.join(', ')}`] : []
  })
  const labels = Object.entries(filter.labels ?? {}).map(([key, value]) => `label ${key}=${value}`)
  const all = [...parts, ...labels]
  return all.length > 0 ? all.join('; ') : 'nothing passes'
}

function given<T extends Record<string, string | undefined>>(values: T): { [K in keyof T]?: string } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: string
  }
}
