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
 * One token, and of two names of Kubernetes never the same one: '' (an inventory of the cluster has no namespace) is `_`, which no name
 * is; a letter that no name has is written by its number.
 */
const safeToken = (value: string): string =>
  value === ''
    ? '_'
    : subjectToken(value).replace(/[^A-Za-z0-9_-]/gu, (letter) => `=${letter.codePointAt(0)?.toString(16)}=`)
