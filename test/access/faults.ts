import { spawnSync } from 'node:child_process'
import { bundle, type Mutation } from './bundle.ts'
import { declaredTypes } from './sources.ts'

/** A mistake as people make them. */
export interface Fault {
  readonly name: string
  readonly mutations: readonly Mutation[]
  /** every how many worlds the API is asked; 0 where the access core alone shows it */
  readonly apiEvery: number
  /** a pattern of the questions that can show it; default all */
  readonly ask?: string
}

const access = 'src/pipeline/access'
const api = 'src/pipeline/api'

/** A mistake in one place. */
const one = (name: string, apiEvery: number, file: string, text: string, instead: string): Fault => ({
  name,
  apiEvery,
  mutations: [{ file, text, instead }],
})
const core = (name: string, file: string, text: string, instead: string): Fault =>
  one(name, 0, `${access}/${file}`, text, instead)
const served = (name: string, file: string, text: string, instead: string): Fault => one(name, 1, file, text, instead)

const monitored = (name: string, file: string, text: string, instead: string): Fault => ({
  ...served(name, `src/pipeline/monitor/${file}`, text, instead),
  ask: '^monitor$',
})

const typed = (...given: Parameters<typeof served>): Fault => ({ ...served(...given), ask: 'type|rows|custom|search' })

export const faults: readonly Fault[] = [
  // ── decisions ──
  core('an expired policy counts', 'touching.ts', 'if (now > bounds.to) return', 'if (now > bounds.to + 1e12) return'),
  core(
    'a policy counts before its time',
    'touching.ts',
    'if (now < bounds.from) return',
    'if (now < bounds.from - 1e12) return',
  ),
  core(
    'the end of a policy is not foreseen',
    'touching.ts',
    'for (const turn of [bounds.from, bounds.to + 1]) {',
    'for (const turn of [bounds.from]) {',
  ),
  core(
    'Deny comes after Allow at equal priority',
    'prepare.ts',
    "Number(b.effect === 'Deny') - Number(a.effect === 'Deny')",
    "Number(a.effect === 'Deny') - Number(b.effect === 'Deny')",
  ),
  core(
    'a Deny with bounds that cannot be read is skipped',
    'prepare.ts',
    'deniesWithoutBounds: true,',
    'deniesWithoutBounds: false,',
  ),
  core(
    'the beginning of a cluster name is enough',
    'select.ts',
    "if (names.size > 0 && names.has(name)) return 'name'",
    "for (const known of names) if (name.startsWith(known)) return 'name'",
  ),
  core(
    'a rule without view shows the cluster',
    'decide.ts',
    'if (found?.rule.view) return ended(policies, at, granted(',
    'if (found) return ended(policies, at, granted(',
  ),
  core(
    'a default speaks against a rule',
    'decide.ts',
    'if (byDefault < 0 || isSelected) return denial(null)',
    'if (byDefault < 0) return denial(null)',
  ),
  core(
    'only the first type that a Deny names is denied',
    'decide.ts',
    'for (const type of found.rule.filters.keys()) if',
    'for (const type of [...found.rule.filters.keys()].slice(0, 1)) if',
  ),
  core(
    'an address counts that nobody verified',
    'touching.ts',
    "semantics === 'strict' && emailVerified === true ? email : ''",
    "semantics === 'strict' ? email : ''",
  ),
  core('anybody may call himself a service account', 'touching.ts', 'if (principal.isServiceAccount) add(', 'add('),
  core(
    'groups are told apart by a comma',
    'touching.ts',
    '[...new Set(principal.groups)].sort(),',
    "[...new Set(principal.groups)].sort().join(','),",
  ),
  core(
    'access views are told apart by the number of their policies',
    'open-access.ts',
    "hash.update('\\n').update(policy.content())",
    "hash.update('\\n').update(policy.effect)",
  ),
  // ── rows ──
  core(
    'excluded does not win',
    'entry.ts',
    'passes: (text) => !isDenied(text) && isAllowed(text),',
    'passes: (text) => isAllowed(text) || !(isDenied(text) || !takesAny),',
  ),
  core('filtered without a filter shows all', 'entry.ts', "(visibility === 'filtered' && !isFiltered) ||", ''),
  core(
    'one of two entries of a type is enough',
    'type-filter.ts',
    'isClosed: entries.some(({ isClosed }) => isClosed),',
    'isClosed: entries.every(({ isClosed }) => isClosed),',
  ),
  core('usage is shown without view_metrics', 'row-filter.ts', '...(!rules.usage && { used: null }),', ''),
  core(
    'the pods of a node are counted over hidden namespaces',
    'row-filter.ts',
    '...(!showsPods && { pods: null, requested: null }),',
    '',
  ),
  core(
    'events of hidden nodes are shown',
    'row-filter.ts',
    'if (node !== undefined && !showsNodeNamed(rules, cluster, text(node))) return false',
    '',
  ),
  core(
    'sums are told to those who see a part',
    'row-filter.ts',
    'if (SUMMARIES.has(event.type) && !isWhole) return false',
    '',
  ),
  core('absence equals an empty label', 'type-filter.ts', "semantics === 'original' ? '' : undefined", "''"),
  // ── answers ──
  served(
    'an encoded list is kept for everybody',
    `${api}/route.ts`,
    'const key = questionOf(contract.schema.operationId, accessView.fingerprint, query)',
    "const key = questionOf(contract.schema.operationId, '', query)",
  ),
  served(
    'an encoded answer about a cluster is kept for everybody',
    `${api}/route.ts`,
    'const key = questionOf(contract.schema.operationId, accessView.fingerprint, [params, query])',
    "const key = questionOf(contract.schema.operationId, '', [params, query])",
  ),
  served(
    'history is kept for everybody',
    `${api}/routes/history.ts`,
    'JSON.stringify([csv, fingerprint, cluster, scope, metrics, keys, window, intervalMs, late, filling])',
    'JSON.stringify([csv, cluster, scope, metrics.map(({ name }) => name), window])',
  ),
  served(
    'views are kept for everybody',
    `${api}/views.ts`,
    'const known = byAccessView.get(accessView.fingerprint)',
    'const known = byAccessView.values().next().value',
  ),
  served(
    'policies of an older generation are kept',
    `${access}/open-access.ts`,
    'if (this.#epoch?.prepared.source === generation) return this.#epoch',
    'if (this.#epoch) return this.#epoch',
  ),
  {
    name: 'hidden events are taken out after the page was cut',
    apiEvery: 1,
    mutations: [
      {
        file: `${api}/routes/fleet.ts`,
        text: 'const events = cluster.events.filter(',
        instead: 'const events = cluster.state.events.filter(',
      },
      {
        file: `${api}/routes/fleet.ts`,
        text: 'return pageBody(eventPage(events, call.query), eventJson, null)',
        instead:
          'const cut = eventPage(events, call.query)\n      return pageBody({ ...cut, items: cut.items.filter((event) => cluster.accessView.showsEvent(cluster.state, event)) }, eventJson, null)',
      },
    ],
  },
  served(
    'totals are taken over hidden nodes',
    `${api}/views.ts`,
    "nodes: wasRead('node') ? visible('node') : null,",
    "nodes: wasRead('node') ? ([...(state.parts.node?.items.values() ?? [])] as ReturnType<typeof visible<'node'>>) : null,",
  ),
  served(
    'search looks at hidden nodes',
    `${api}/search-index.ts`,
    "entriesOf(visible('node'), ",
    'entriesOf([...(state.parts.node?.items.values() ?? [])], ',
  ),
  served(
    'health speaks of what is hidden',
    `${api}/seen-status.ts`,
    'if (whole) return {',
    'if (whole || health) return {',
  ),
  served(
    'alerts are not filtered',
    `${api}/routes/v1.ts`,
    '.filter((alert) => accessView.showsAlert(state, alert))',
    '',
  ),
  served('the history of hidden nodes is read', `${api}/routes/history.ts`, '.filter((name) => seen.has(name))', ''),
  served(
    'totals over time are shown to those who see a part',
    `${api}/whole.ts`,
    'if (whole) return\n',
    'if (whole || state) return\n',
  ),
  // ── what MetricSources collect ──
  core(
    'a type that no rule names is shown',
    'decide.ts',
    '  return customDenial(null)\n}\n\nfunction customGrant(',
    "  const open = policies.findIndex(({ effect }) => effect === 'Allow')\n  if (open >= 0) return { result: 'allow', by: null, filter: openFilter, viewMetrics: true }\n  return customDenial(null)\n}\n\nfunction customGrant(",
  ),
  typed(
    'a type that is denied is there',
    `${api}/visible-types.ts`,
    "if (custom.result === 'deny') return undefined",
    '',
  ),
  typed(
    'rows are not filtered',
    `${api}/visible-types.ts`,
    'return this.#seen?.seenIn(chunk) ?? allRows',
    'return (this.custom ? undefined : this.#seen?.seenIn(chunk)) ?? allRows',
  ),
  typed(
    'rows of snapshots are made of hidden ones',
    `${api}/snapshot-rows.ts`,
    'return cluster.visible(type) as',
    'return [...(cluster.state.parts[type]?.items.values() ?? [])] as unknown as',
  ),
  typed(
    'rows that may be seen are kept for everybody',
    `${api}/visible-types.ts`,
    'const key = JSON.stringify([accessView.fingerprint, name, source.typeName, this.#isTaken(source.typeName)])',
    'const key = JSON.stringify([name, source.typeName])',
  ),
  typed(
    'sums of a type are taken over hidden rows',
    `${api}/visible-types.ts`,
    'const made = this.source.aggregate(rows.only(places))',
    'const made = this.source.aggregate(places ? rows : rows.only(places))',
  ),
  typed(
    'whether a sum is of nothing is told of hidden rows',
    `${api}/visible-types.ts`,
    'this.source.sumsOfNothing(part ? part.rows.only(part.places) : this.#all)',
    'this.source.sumsOfNothing(part ? part.rows : this.#all)',
  ),
  typed(
    'whole numbers are given to those who see some rows',
    `${api}/visible-types.ts`,
    'this.source.filterAggregations ? made() : (this.state?.aggregations ?? {})',
    'this.state?.aggregations ?? made()',
  ),
  typed(
    'sums that a policy keeps back are shown',
    `${api}/visible-types.ts`,
    'declared.has(name) && this.custom.aggregation(name)',
    'declared.has(name)',
  ),
  typed(
    'measurements of a type are shown without view_metrics',
    `${api}/visible-types.ts`,
    'if (!this.custom.metrics) return null',
    '',
  ),
  typed(
    'unread namespaces are named to everybody',
    `${api}/type-views.ts`,
    'if (whole || errors.length === 0) return errors',
    'if (whole || errors.length >= 0) return errors',
  ),
  typed(
    'rows of a type are kept for everybody',
    `${api}/routes/types.ts`,
    'const key = questionOf(contract.schema.operationId, accessView.fingerprint, [params, query, version])',
    "const key = questionOf(contract.schema.operationId, '', [params, query, version])",
  ),
  typed(
    'search and types are kept for everybody',
    `${api}/routes/types.ts`,
    'const key = questionOf(contract.schema.operationId, accessView.fingerprint, [params, query])',
    "const key = questionOf(contract.schema.operationId, '', [params, query])",
  ),
  typed(
    'sums over time of a type are shown to those who see some rows',
    `${api}/whole.ts`,
    'if (!custom.whole)\n',
    'if (!custom)\n',
  ),
  typed(
    'PromQL gives aggregations of any type',
    `${api}/promql.ts`,
    'if (!selector.metric.startsWith(customPrefix)) return [matcher]',
    'if (selector.metric) return [matcher]',
  ),
  {
    ...served(
      'a list of series finds aggregations of any type',
      `${api}/promql-rights.ts`,
      'return custom?.whole && custom.metrics ? [{ name: state.name, custom }] : []',
      'return custom ? [{ name: state.name, custom }] : []',
    ),
    ask: '/api/v1/(label|series|metadata)',
  },
  {
    ...served(
      'selectors of lists are not narrowed',
      `${api}/routes/promql-lists.ts`,
      "'match[]': narrowed,",
      "'match[]': selectors,",
    ),
    ask: '/api/v1/(label|series|metadata)',
  },
  {
    ...served(
      'the history of a type gives what a policy keeps back',
      `${api}/routes/history.ts`,
      'one.hasHistory && custom.aggregation(one.name)',
      'one.hasHistory',
    ),
    ask: `/types/(${declaredTypes.join('|')})/history`,
  },
  // ── kinds of rows that are compiled in ──
  core(
    'rows in hidden namespaces are shown',
    'resource-access-view.ts',
    'if (!isNamespaceShown(namespace)) return inHiddenNamespace',
    '',
  ),
  core(
    'a policy that hides pods shows what runs them',
    'resource-access-view.ts',
    "if (rule === 'namespaced' && !isNamed(filters, resource) && !pods.isOpen) return undefined",
    '',
  ),
  core(
    'inventory is shown to whom something is hidden, though no policy names it',
    'resource-access-view.ts',
    "if (rule === 'named' && !isNamed(filters, resource) && !areOpen(filters)) return undefined",
    '',
  ),
  core(
    'inventory of the cluster itself is shown beside what is hidden',
    'resource-access-view.ts',
    "rule === 'named' && namespace === ''",
    'false',
  ),
  core(
    'a filter that is meant for a MetricSource of the same name opens the kind',
    'resource-access-view.ts',
    '(!isTaken && filters.has(name))',
    'filters.has(name)',
  ),
  core(
    'a filter stops narrowing a kind once its name is taken',
    'resource-access-view.ts',
    'const own = [filters.get(name) ?? openFilter,',
    'const own = [(resource.isTaken ? undefined : filters.get(name)) ?? openFilter,',
  ),
  core(
    'rows are whole where namespaces are hidden',
    'resource-access-view.ts',
    'const all = [...(filters ?? []), namespaces,',
    'const all = [...(filters ?? []),',
  ),
  core(
    'an event about a hidden pod is shown',
    'event-access-view.ts',
    'return whyRowHidden(rules, its, row, isNamespaceShown) === null ? null : withItsObject',
    'return its === undefined && row ? withItsObject : null',
  ),
  core(
    'an event about a hidden node is shown',
    'event-access-view.ts',
    'return whyNodeHidden(rules, object.name, labels) === null ? null : withItsObject',
    'return labels === undefined ? withItsObject : null',
  ),
  core(
    'an event says the name of a hidden node',
    'event-access-view.ts',
    '(word === node || nodes?.has(word)) && isHidden(word)',
    'word === node && isHidden(word)',
  ),
  core(
    'an event of inventory is told as any other',
    'event-access-view.ts',
    "kind?.startsWith('Kollect') ?? false",
    "kind === 'Kollect'",
  ),
  core(
    'an event of inventory names a hidden namespace that no target is about any more',
    'event-access-view.ts',
    "word.split('/').some(isHiddenPlace)",
    'word.length < 0',
  ),
  typed(
    'an event that is withheld in part is told whole',
    `${api}/seen-rows.ts`,
    'if (withheld.every(({ size }) => size === 0)) return chunk',
    'if (withheld) return chunk',
  ),
  typed(
    'a pod names a hidden node',
    `${api}/seen-rows.ts`,
    "column?.refersTo === 'node' ? [at] : []",
    "column?.refersTo === 'node' ? [] : []",
  ),
  typed(
    'rows say what they know of hidden namespaces',
    `${api}/seen-rows.ts`,
    'const isTelling = tells && telling.length > 0',
    'const isTelling = tells && telling.length < 0',
  ),
  core(
    'a list names a hidden namespace',
    'told-namespaces.ts',
    'value.split(BETWEEN).filter(isShown).join(BETWEEN) || null',
    'value',
  ),
  core(
    'a text about some hidden namespace is told',
    'told-namespaces.ts',
    'namesIn(row.value(column))?.every(isShown)',
    'namesIn(row.value(column))?.some(isShown)',
  ),
  core(
    'a sink tells of rows that targets of the cluster have in hidden namespaces',
    'told-namespaces.ts',
    "withCluster ? [''] : []",
    'withCluster ? [] : []',
  ),
  core(
    'an event names what is in a hidden namespace',
    'event-access-view.ts',
    'isOfPods || namesNode || namesPlace',
    'isOfPods || namesNode',
  ),
  typed(
    'what pods use is shown without view_metrics',
    `${api}/visible-types.ts`,
    'source.measured && accessView.usage(cluster)',
    'source.measured',
  ),
  typed(
    'what hidden pods use is summed up',
    `${api}/visible-types.ts`,
    'measuredSums(this.source, rows, this.places)',
    'measuredSums(this.source, rows)',
  ),
  served(
    'a stream goes on by its old access view',
    `${api}/stream.ts`,
    'else if (accessView) this.#move(client, accessView)',
    'else if (accessView) client.ready = true',
  ),

  // ── Cluster Monitor's listener ──
  monitored(
    'a name says whose a namespace is whose label names another',
    'tenancy.ts',
    'if (owner === undefined) unlabelled.push(name)',
    'unlabelled.push(name)\n      if (owner === undefined) continue',
  ),
  monitored('the beginning of a user id is enough', 'tenancy.ts', '{userId}-`', '{userId}`'),
  monitored('the past of others is told', 'http/answers.ts', '=== namespace) && shows(own, name)', '=== namespace)'),
  monitored(
    'clusters are there for who owns nothing in them',
    'http/selection.ts',
    'view.canSee(cluster) && selection',
    'selection',
  ),
  monitored(
    'everybody has the access view of who asked first',
    'tenancy.ts',
    'const known = this.#views.get(userId)',
    'const [known] = this.#views.values()',
  ),
]

/** The last line of a run. */
interface Last {
  readonly end: boolean
  readonly failure?: { readonly kind: string; readonly seed: number }
}

interface Limits {
  readonly worlds?: number
  readonly ms?: number
}

/**
 * Runs the fuzz over the source with this mistake in it.
 * @throws where it ends before it found something or saw every world: that says nothing about the mistake
 */
export async function runFault(
  fault: Fault,
  directory: string,
  { worlds = 4000, ms: limitMs = 300_000 }: Limits = {},
): Promise<{ found: boolean; detail: string; ms: number }> {
  const began = Date.now()
  const file = await bundle(directory, fault.name.replaceAll(/\W+/g, '-'), fault.mutations)
  const words = ['--seed', '1', '--worlds', String(worlds), '--api-every', String(fault.apiEvery), '--as-found']
  if (fault.ask !== undefined) words.push('--ask', fault.ask)
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, [file, ...words], {
    env: { ...process.env, ACCESS_FUZZ_WORKER: '1' },
    encoding: 'utf8',
    maxBuffer: 64 * 2 ** 20,
    timeout: limitMs,
  })
  const last = stdout.trim().split('\n').at(-1) ?? ''
  const { end, failure } = (last.startsWith('{') ? JSON.parse(last) : {}) as Partial<Last>
  if (!end) {
    const why = signal
      ? `was ended after ${limitMs / 1000} s, ${last || 'before its first world'}`
      : stderr.slice(-2000)
    throw new Error(`the fuzz with the fault "${fault.name}" ${why}`)
  }
  return {
    found: status === 1 && failure !== undefined,
    detail: failure ? `${failure.kind}, seed ${failure.seed}` : 'no difference',
    ms: Date.now() - began,
  }
}
