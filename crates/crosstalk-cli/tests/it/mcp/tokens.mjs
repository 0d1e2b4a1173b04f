// Counts what the tools cost a model: the list as the server sends it, and the result of an empty check.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
const require = createRequire(process.argv[2] + '/');
const { encode } = require('gpt-tokenizer/encoding/o200k_base');
const texts = JSON.parse(readFileSync(0, 'utf8'));
console.log(JSON.stringify(texts.map((text) => encode(text).length)));
