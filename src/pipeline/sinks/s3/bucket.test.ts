import { describe, expect, it } from 'vitest'
import { SinkError } from '../sink.ts'
import { parseBucket } from './bucket.ts'

describe('an endpoint of a bucket', () => {
  it.each([
    [
      's3://shop/inventory/a',
      undefined,
      'https://s3.us-east-1.amazonaws.com',
      'shop',
      'inventory/a/',
      'us-east-1',
      false,
    ],
    ['shop', 'eu-central-1', 'https://s3.eu-central-1.amazonaws.com', 'shop', '', 'eu-central-1', false],
    ['shop/a/', 'cn-north-1', 'https://s3.cn-north-1.amazonaws.com.cn', 'shop', 'a/', 'cn-north-1', false],
    ['https://minio.test:9000/shop/a//b', undefined, 'https://minio.test:9000', 'shop', 'a/b/', 'us-east-1', true],
    [
      'https://s3.eu-west-1.amazonaws.com/shop',
      undefined,
      'https://s3.eu-west-1.amazonaws.com',
      'shop',
      '',
      'eu-west-1',
      true,
    ],
    ['http://127.0.0.1:7070/shop', 'x', 'http://127.0.0.1:7070', 'shop', '', 'x', true],
  ])('%s (region %s) is taken apart', (text, asked, endpoint, bucket, prefix, region, isPathStyle) =>
    expect(parseBucket(text, asked)).toMatchObject({ endpoint, bucket, prefix, region, isPathStyle }),
  )

  it.each(['x@127.0.0.1:9000/', 'eu central', '', 'a/b', 'x.y'])(
    'a region that could lead elsewhere is refused: %j',
    (region) => expect(() => parseBucket('s3://shop/a', region)).toThrow(/region of the Secret is none/),
  )

  it.each(['', 'https://minio.test', 'https://minio.test/', 'gs://shop/a', 's3://', 's3://shop/../other'])(
    'without a bucket, or that leads out of it, is refused: %j',
    (text) => expect(() => parseBucket(text, undefined)).toThrow(SinkError),
  )
})
