import { clusterOperators, type KubeObject } from '#kube'
import type { ClusterOperatorSnapshot, ResourceCondition } from '#model'
import { fed, foldOf, Kept, listOf, placeOf } from './fold.ts'
import { conditions, fields, items, text } from './read.ts'
import type { Collector } from './types.ts'

const all = listOf(clusterOperators, { isOptional: true })

/** The parts an OpenShift cluster is made of; absent on other clusters. */
export const clusterOperatorCollector: Collector = {
  name: 'clusterOperators',
  types: ['clusterOperator'],
  reads: [all],
  critical: false,
  open() {
    const kept = new Kept({ key: placeOf, of: clusterOperatorSnapshot })
    return foldOf([fed(all, kept)], () => {
      if (!kept.isServed) return { absent: 'this cluster has no ClusterOperators' }
      return { clusterOperator: [...kept.values()].sort((a, b) => (a.name < b.name ? -1 : 1)) }
    })
  },
}

export function clusterOperatorSnapshot(object: KubeObject): ClusterOperatorSnapshot {
  const { name } = object.metadata
  const status = fields(object.status)
  const stated = conditions(status.conditions)
  const versions = items(status.versions).map((entry) => ({ name: text(entry.name), version: text(entry.version) }))
  return {
    name,
    version: versionOf(name, versions),
    ...verdict(stated),
    lastTransitionAt: latest(stated),
    conditions: stated,
    versions,
    relatedObjects: items(status.relatedObjects).map((entry) => ({
      group: text(entry.group),
      resource: text(entry.resource),
      namespace: text(entry.namespace),
      name: text(entry.name),
    })),
  }
}

/** The last version called `operator` or like the object; else the first. */
function versionOf(name: string, versions: ClusterOperatorSnapshot['versions']): string {
  const own = versions.filter((entry) => entry.name === 'operator' || entry.name === name)
  return (own.at(-1) ?? versions[0])?.version ?? ''
}

type Verdict = Pick<
  ClusterOperatorSnapshot,
  'available' | 'progressing' | 'degraded' | 'upgradeable' | 'message' | 'reason'
>

/**
 * What the conditions say, and which of their messages is shown. They are walked in the order of the object: a later
 * trouble replaces the message of an earlier one; progress is shown only where no trouble is.
 */
function verdict(stated: readonly ResourceCondition[]): Verdict {
  const result = { available: false, progressing: false, degraded: false, upgradeable: false, message: '', reason: '' }
  for (const { type, status, reason, message } of stated) {
    const holds = status === 'True'
    const isTrouble = (type === 'Available' && !holds) || (type === 'Degraded' && holds)
    if (type === 'Available') result.available = holds
    if (type === 'Progressing') result.progressing = holds
    if (type === 'Degraded') result.degraded = holds
    if (type === 'Upgradeable') result.upgradeable = holds
    if (message === '') continue
    if (isTrouble) Object.assign(result, { message, reason })
    else if (type === 'Progressing' && holds && result.message === '') result.message = message
  }
  return result
}

function latest(stated: readonly ResourceCondition[]): number | null {
  return stated.reduce<number | null>(
    (last, { lastTransitionAt: at }) => (at !== null && (last === null || at > last) ? at : last),
    null,
  )
}
