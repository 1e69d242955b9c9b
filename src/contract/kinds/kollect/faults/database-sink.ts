import type { Fault } from '../../kind.ts'
import { faultIf, type Json, recordOf, shown, textOf } from './json.ts'
import type { KollectKnown } from './known.ts'
import { type SinkSubject, type SinkType, secretFaults, sinkFaults } from './sink.ts'

/** As Postgres writes times: a number is in milliseconds. @see Postgres, "Setting Parameters" */
const TIMEOUT = /^\s*\d{1,9}\s*(us|ms|s|min|h|d)?\s*$/

const postgres: SinkType = {
  block: 'postgres',
  needsBlock: true,
  formats: ['json'],
  options: {
    statement_timeout: (value) =>
      TIMEOUT.test(value)
        ? undefined
        : `is ${shown(value)}: write a time as Postgres does, such as 30s, 5min or 2500 for milliseconds`,
  },
}
const NOT_BUILT = ['bigquery', 'mongodb']
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/

/** Everything wrong with the spec of a sink of rows. */
export function databaseSinkFaults(spec: Json, metadata: Json, known: KollectKnown): Fault[] {
  const name = textOf(spec.type)
  if (name === undefined) return []
  if (NOT_BUILT.includes(name))
    return [
      {
        path: 'spec.type',
        message: `is ${shown(name)}, which is not built: write to Postgres with type postgres and let ${name} read from there, or publish events with a KollectEventSink`,
      },
    ]
  if (name !== 'postgres') return []
  const subject: SinkSubject = { spec, metadata, known, type: name }
  const { databaseRef, table, schema } = recordOf(spec.postgres)
  return [
    ...sinkFaults(subject, postgres, ['postgres', ...NOT_BUILT]),
    ...secretFaults(subject, 'spec.postgres.databaseRef', databaseRef),
    ...[['table', table] as const, ['schema', schema] as const].flatMap(([field, value]) => {
      const text = textOf(value)
      return faultIf(
        `spec.postgres.${field}`,
        text !== undefined &&
          !IDENTIFIER.test(text) &&
          `is ${shown(text)}: letters, digits and "_" only, no digit first, at most 63`,
      )
    }),
  ]
}
