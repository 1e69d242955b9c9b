/**
 * Documents in a bucket, of AWS or of any store that speaks S3.
 *
 *   parts ─▶ put, in place ─▶ set manifest ─▶ parts of before that are no more: deleted
 *
 * Whoever reads takes the parts that the manifest names, all with its snapshotId; else a writer is under way.
 */
import type { Sink, SinkContext, SnapshotDeclaration } from '../sink.ts'
import { S3Sink } from './s3-sink.ts'

export const openS3 = (declaration: SnapshotDeclaration, context: SinkContext): Sink => new S3Sink(declaration, context)
