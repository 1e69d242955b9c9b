import type { Fault } from '../../kind.ts'

/** Objects of JSON that nobody checked: whatever is of another shape reads as if it were not there. */
export type Json = Readonly<Record<string, unknown>>

const NOTHING: Json = {}
export const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
export const recordOf = (value: unknown): Json => (isRecord(value) ? value : NOTHING)
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
export const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

/** A fault where there is something to say. */
export const faultIf = (path: string, message: string | false | undefined): Fault[] =>
  message ? [{ path, message }] : []

/** Long texts are cut: what is wrong stands at their beginning. */
export const shown = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text)

/** Letters of all texts. */
export const lettersOf = (values: readonly unknown[]): number =>
  values.reduce<number>((sum, value) => sum + (textOf(value)?.length ?? 0), 0)
