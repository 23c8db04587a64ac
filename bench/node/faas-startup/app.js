// The start of a function that talks to object storage, to other functions and to a payment service: what it requires,
// once, in a fresh process.
'use strict';

const OSS = require('ali-oss');
const FunctionCompute = require('@alicloud/fc2');
const { AlipaySdk } = require('alipay-sdk');

const constructors = [OSS, FunctionCompute, AlipaySdk].filter((constructor) => typeof constructor === 'function');
console.log(`ok ${constructors.length}`);
