import { subjectToken } from '#nats'
import type { Writing } from '../sink.ts'

const PLACEHOLDER = /\{(cluster|namespace|name)\}/g

/** The subject of an inventory: each value becomes one token, or a part of one. */
export const subjectFor = (template: string, { cluster, namespace, inventory }: Writing): string =>
  template.replace(PLACEHOLDER, (_, which: 'cluster' | 'namespace' | 'name') =>
    safeToken({ cluster, namespace, name: inventory }[which]),
  )

/** What covers the subjects of all inventories of all clusters: the same text in every cluster, so that none replaces another's. */
export const subjectFilter = (template: string): string =>
  template
    .split('.')
    .map((token) => (token.search(PLACEHOLDER) < 0 ? token : '*'))
    .join('.')

/** Whether no two inventories share a subject: each value is there, and no two stand in one token, where they could run together. */
export const isOwnSubject = (template: string): boolean =>
  ['{cluster}', '{namespace}', '{name}'].every((one) => template.includes(one)) &&
  template.split('.').every((token) => [...token.matchAll(PLACEHOLDER)].length <= 1)

/**
 * One token, and of two values never the same one: '' (an inventory of the cluster has no namespace) is `_`, a dot within a value too;
 * a letter that no name of Kubernetes has is written by its number, and so is the `_` that a cluster may be named with.
 */
const safeToken = (value: string): string =>
  value === ''
    ? '_'
    : subjectToken(value.replace(/[^A-Za-z0-9.-]/gu, (letter) => `=${letter.codePointAt(0)?.toString(16)}=`))
