import { type Static, Type } from 'typebox'
import { defineKind, type KindObject } from '../kind.ts'
import { Text } from '../parts.ts'
import { OneOf } from '../words.ts'
import { KOLLECT_GROUP, KOLLECT_VERSION } from './names.ts'
import { SecretRef } from './parts.ts'
import { LeftOut, SinkStatus, sinkColumns, sinkFields } from './sink-parts.ts'

const Spec = Type.Object(
  {
    type: OneOf(['postgres', 'bigquery', 'mongodb'], { description: 'postgres; bigquery and mongodb are refused' }),
    ...sinkFields,
    postgres: Type.Optional(
      Type.Object(
        {
          databaseRef: SecretRef(
            'Secret with the connection string in `dsn`, `url`, `connectionString` or `DATABASE_URL`',
          ),
          table: Text(63, 'table of the rows'),
          schema: Type.Optional(Type.String({ maxLength: 63, default: 'public', description: 'schema of the table' })),
        },
        { description: 'for type postgres' },
      ),
    ),
    bigquery: LeftOut('the type bigquery'),
    mongodb: LeftOut('the type mongodb'),
  },
  { description: 'where rows go' },
)

/** A sink of rows. */
export const kollectDatabaseSink = defineKind({
  group: KOLLECT_GROUP,
  version: KOLLECT_VERSION,
  kind: 'KollectDatabaseSink',
  plural: 'kollectdatabasesinks',
  singular: 'kollectdatabasesink',
  shortNames: ['kdb'],
  categories: [],
  description: 'A table of a database, which several clusters may share.',
  columns: sinkColumns,
  spec: Spec,
  status: SinkStatus,
  example: {
    apiVersion: `${KOLLECT_GROUP}/${KOLLECT_VERSION}`,
    kind: 'KollectDatabaseSink',
    metadata: { name: 'warehouse', namespace: 'team-a' },
    spec: {
      type: 'postgres',
      postgres: { databaseRef: { name: 'warehouse' }, table: 'inventory' },
      options: { statement_timeout: '30s' },
    },
  },
})

/** Which table rows go to. */
export type KollectDatabaseSinkSpec = Static<typeof Spec>
/** The object as the API keeps it. */
export type KollectDatabaseSink = KindObject<KollectDatabaseSinkSpec, Static<typeof SinkStatus>>
