import { createHash } from 'node:crypto'
import { canonicalJson, type Row } from '#extract'
import type { RowKey } from '../sink.ts'

/** What is done with one claim, and with the resource it is on. */
export interface Change {
  readonly key: RowKey
  /** absent: the claim is gone */
  readonly put?: { readonly row: Row; readonly hash: string }
}

/** SHA-256 of a row without its target, base64: equal for what equals, whoever sees it. */
export function hashOf({ namespace, name, group, version, kind, uid, attributes }: Row): string {
  const head = JSON.stringify([namespace, name, group ?? '', version, kind, uid])
  return createHash('sha256').update(head).update(canonicalJson(attributes)).digest('base64')
}

/** One text for one key. Names hold no control letters. */
export const keyText = ({ targetNamespace, targetName, namespace, name, uid }: RowKey): string =>
  `${targetNamespace}\n${targetName}\n${namespace}\n${name}\n${uid}`

export function keyOfText(text: string): RowKey {
  const [targetNamespace = '', targetName = '', namespace = '', name = '', uid = ''] = text.split('\n')
  return { targetNamespace, targetName, namespace, name, uid }
}

/** JSON that jsonb takes: it has no NUL and no halves of letters. */
export function jsonbText(value: unknown): string {
  const text = JSON.stringify(value)
  if (!/\\u(0000|d[89a-f])/i.test(text)) return text
  return JSON.stringify(cleaned(value))
}

function cleaned(value: unknown): unknown {
  if (typeof value === 'string') return wellFormed(value)
  if (Array.isArray(value)) return value.map(cleaned)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [wellFormed(key), cleaned(one)]))
}

// With `u`, only halves without their other half are met.
const wellFormed = (text: string): string => text.replace(/[\0\ud800-\udfff]/gu, '\ufffd')
